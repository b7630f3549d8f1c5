"""What counts do not have, from the newest recipients of a range: results by tag or sender domain, delivery times.

A sample examines a bounded number of messages and says how far back it went, so its cost does not grow with the mail.
"""

import collections
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from postroad.model import cursors, identifiers, mail, providers, times
from postroad.services import context
from postroad.storage import hourly_counts, recipient_scan

# Read twice, for the range and the one before, in about 200 ms of processor time on SQLite.
MAX_COUNTED: Final = 10_000
# Enough for a 95th percentile of each provider, in about 15 ms: open pages ask once a second.
MAX_TIMED: Final = 2_000
_ENDED: Final[dict[str, str]] = {
    mail.RecipientStatus.DELIVERED: "delivered",
    mail.RecipientStatus.BOUNCED: "bounced",
    mail.RecipientStatus.FAILED: "failed",
    mail.RecipientStatus.EXPIRED: "failed",
}
_ENDED_BY_ATTEMPT: Final = frozenset(
    {mail.RecipientStatus.DELIVERED, mail.RecipientStatus.BOUNCED, mail.RecipientStatus.FAILED}
)


class Narrowing(msgspec.Struct, frozen=True):
    """The mail to count: with a tag, from senders in a domain; empty for all."""

    domain: str = ""
    tag: str = ""

    def __bool__(self) -> bool:
        return bool(self.domain or self.tag)


ALL_MAIL: Final = Narrowing()


class Sample(msgspec.Struct, frozen=True):
    """Recipients, newest first. `back_to` is where the sample ends although the range goes on; None: it is complete."""

    recipients: list[recipient_scan.ScannedRecipient]
    back_to: int | None


class DeliveryTime(msgspec.Struct, frozen=True):
    """How long deliveries to a provider took, from acceptance on, in microseconds: half of them, and 95 of 100."""

    provider: str
    count: int
    p50: int
    p95: int


async def read(
    ctx: context.Context,
    account_id: str,
    *,
    from_hour: int,
    until_hour: int,
    narrowing: Narrowing,
    limit: int,
) -> Sample:
    """The newest recipients of mail that was accepted between two hours."""
    scope = recipient_scan.Scope(
        cursors.at(identifiers.MESSAGE, from_hour * times.HOUR),
        cursors.at(identifiers.MESSAGE, until_hour * times.HOUR),
        narrowing.tag,
        narrowing.domain,
    )
    async with ctx.store.scanning(account_id) as tx:
        floor = await recipient_scan.floor(tx, account_id, scope, examined=limit)
        within = scope if floor is None else replace(scope, after=floor)
        found = await recipient_scan.newest(tx, account_id, within, limit=limit)
    oldest = found[-1].message_id if len(found) == limit else floor
    return Sample(found, None if oldest is None else cursors.time_of(oldest, identifiers.MESSAGE))


def hourly(sample: Sample, *, from_hour: int) -> list[hourly_counts.BucketTotal]:
    """The sample as hourly counts, from an hour on. A recipient counts for the provider of its last attempt."""
    counts: dict[tuple[int, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    accepted = {one.message_id: one.created_at // times.HOUR for one in sample.recipients}
    for hour, count in collections.Counter(accepted.values()).items():
        counts[hour, ""]["messages"] += count
    # Few kinds of many recipients: what follows is done once for each kind.
    kinds = collections.Counter(
        (one.created_at // times.HOUR, one.provider_queue, one.status, one.attempt_count) for one in sample.recipients
    )
    for (hour, provider_queue, status, attempt_count), count in kinds.items():
        counts[hour, ""]["recipients"] += count
        results = counts[hour, _provider(provider_queue)]
        if status in _ENDED:
            results[_ENDED[status]] += count
        results["deferred"] += count * _deferrals(status, attempt_count)
    names = hourly_counts.BucketTotal.__struct_fields__[2:]
    return [
        hourly_counts.BucketTotal(hour - from_hour, provider, *(values[name] for name in names))
        for (hour, provider), values in counts.items()
    ]


def delivery_times(sample: Sample) -> list[DeliveryTime]:
    """Delivery times by provider, most deliveries first. A scheduled message is timed from its `send_at` on."""
    by_provider: dict[str, list[int]] = {}
    for one in sample.recipients:
        if one.delivered_at is not None:
            began = max(one.created_at, one.send_at or 0)
            by_provider.setdefault(_provider(one.provider_queue), []).append(max(0, one.delivered_at - began))
    found = [
        DeliveryTime(name, len(durations), _percentile(durations, 50), _percentile(durations, 95))
        for name, durations in by_provider.items()
    ]
    return sorted(found, key=lambda one: (-one.count, one.provider))


def _provider(provider_queue: str | None) -> str:
    """The provider that a recipient counts for; empty without an attempt."""
    return providers.label_of(provider_queue) if provider_queue else ""


def _deferrals(status: str, attempt_count: int) -> int:
    """Attempts after which there was, or will be, another one."""
    return max(0, attempt_count - int(status in _ENDED_BY_ATTEMPT))


def _percentile(durations: Iterable[int], percent: int) -> int:
    """By nearest rank: one of the durations, at which or below so many percent of them are."""
    ordered: Sequence[int] = sorted(durations)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
