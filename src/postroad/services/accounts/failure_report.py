"""Why mail was not delivered: the recipients that bounced or failed in a range, by cause and mailbox provider.

The numbers are those of the overview, to the last recipient: both are counted in the same transactions, and what has no
cause in the counts by cause is a group of its own. Examples are looked for among the newest refusals only.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from postroad import context
from postroad.model.bounces import failure_causes
from postroad.model.delivery import providers
from postroad.model.units import chart_ranges, times
from postroad.storage.engine import store
from postroad.storage.mail import attempts, mail_counts

# A bound for the search for examples.
MAX_EXAMPLES_EXAMINED: Final = 2_000
Key = tuple[str, str]  # cause and provider


class FailureGroup(msgspec.Struct, frozen=True):
    """The recipients with a cause at a provider, and by bucket. `before` is their number in the range before."""

    cause: str
    provider: str
    bounced: int
    failed: int
    before: int
    trend: list[int]
    example: attempts.RefusalExample | None

    @property
    def count(self) -> int:
        return self.bounced + self.failed

    @property
    def described(self) -> failure_causes.FailureCause:
        return failure_causes.describe(self.cause, self.provider)


class FailureReport(msgspec.Struct, frozen=True):
    groups: list[FailureGroup]
    bounced: int
    failed: int
    before: int


async def read(ctx: context.Context, account_id: str, chosen: chart_ranges.Range) -> FailureReport:
    async with ctx.store.scanning(account_id) as tx:
        recent = await _counts(tx, account_id, chosen.from_hour, chosen.until_hour)
        before = await _counts(tx, account_id, chosen.compared_from, chosen.compared_until)
        refused = await attempts.refusal_examples(
            tx,
            account_id,
            started_from=chosen.from_hour * times.HOUR,
            started_until=chosen.until_hour * times.HOUR,
            limit=MAX_EXAMPLES_EXAMINED,
        )
    # The newest of each kind is kept, which comes last.
    examples = {
        (example.reason, providers.label_of(example.provider_queue) if example.provider_queue else ""): example
        for example in reversed(refused)
    }
    earlier = {key: sum(row.bounced + row.failed for row in rows) for key, rows in _by_key(before).items()}
    groups = [
        FailureGroup(
            cause=cause,
            provider=provider,
            bounced=sum(row.bounced for row in rows),
            failed=sum(row.failed for row in rows),
            before=earlier.get((cause, provider), 0),
            trend=_trend(rows, chosen),
            example=examples.get((cause, provider)),
        )
        for (cause, provider), rows in _by_key(recent).items()
    ]
    return FailureReport(
        sorted(groups, key=lambda group: (-group.count, group.cause, group.provider)),
        bounced=sum(group.bounced for group in groups),
        failed=sum(group.failed for group in groups),
        before=sum(earlier.values()),
    )


async def _counts(
    tx: store.Transaction, account_id: str, from_hour: int, until_hour: int
) -> list[mail_counts.FailureTotal]:
    """The counts by cause, and what the hourly counts have beyond them."""
    rest = {
        (from_hour + hour.bucket, hour.provider): [hour.bounced, hour.failed]
        for hour in await mail_counts.hourly_sums(tx, account_id, from_hour=from_hour, until_hour=until_hour, hours=1)
    }
    counted = await mail_counts.failures_between(tx, account_id, from_hour=from_hour, until_hour=until_hour)
    # Old hours are deleted from one table before the other.
    known = [total for total in counted if (total.hour, total.provider) in rest]
    for total in known:
        left = rest[total.hour, total.provider]
        left[0] -= total.bounced
        left[1] -= total.failed
    unknown = (
        mail_counts.FailureTotal(hour, provider, failure_causes.UNKNOWN, *left)
        for (hour, provider), left in rest.items()
        if any(left)
    )
    return [*known, *unknown]


def _by_key(rows: Iterable[mail_counts.FailureTotal]) -> dict[Key, list[mail_counts.FailureTotal]]:
    found: dict[Key, list[mail_counts.FailureTotal]] = {}
    for row in rows:
        found.setdefault((row.reason, row.provider), []).append(row)
    return found


def _trend(rows: Iterable[mail_counts.FailureTotal], chosen: chart_ranges.Range) -> list[int]:
    trend = [0] * len(chosen.starts)
    for row in rows:
        trend[chosen.place_of(row.hour)] += row.bounced + row.failed
    return trend
