"""Statistics of an account: series for charts, results by provider, the queue, and the latest failures.

Nothing here scans mail. Charts use hourly counts recorded with the mail itself (storage/hourly_counts.py); the rest are
index lookups: the cost does not grow with the number of messages. All times are UTC; the last bucket is the current
one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from postroad.model import times
from postroad.model.bounces import disposition
from postroad.services import context
from postroad.services.accounts import registry as accounts
from postroad.services.queue import conditions, inspection
from postroad.storage import accounts as stored_accounts
from postroad.storage import attempts, hourly_counts, queue_views, store, webhook_deliveries, webhooks

LATEST_FAILURES: Final = 10
# A rate over fewer results means little: one refusal of two does not mean that a provider refuses half of all mail.
MIN_RESULTS: Final = 20
# As many as fit on a page without scrolling.
PULSE_DELIVERIES: Final = 20
PULSE_BYTES: Final = 8


class Period(StrEnum):
    """The period of a chart."""

    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"


@dataclass(frozen=True, slots=True)
class Bucketing:
    """How a period is divided: a number of buckets of some hours each."""

    buckets: int
    hours: int


SHAPES: Final = {Period.DAY: Bucketing(24, 1), Period.WEEK: Bucketing(28, 6), Period.MONTH: Bucketing(30, 24)}


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts. `deferred` counts attempts that will be repeated, the others messages and recipients."""

    messages: int = 0
    recipients: int = 0
    delivered: int = 0
    bounced: int = 0
    failed: int = 0
    deferred: int = 0


@dataclass(frozen=True, slots=True)
class Series:
    """Counts by bucket; `starts` has the start of each."""

    starts: list[int]
    messages: list[int]
    recipients: list[int]
    delivered: list[int]
    bounced: list[int]
    failed: list[int]
    deferred: list[int]


@dataclass(frozen=True, slots=True)
class Provider:
    """Results at one mailbox provider."""

    name: str
    delivered: int
    bounced: int
    failed: int
    deferred: int

    @property
    def refused(self) -> int:
        """Recipients that it refused finally."""
        return self.bounced + self.failed

    @property
    def ended(self) -> int:
        """Recipients with a final result."""
        return self.delivered + self.refused


@dataclass(frozen=True, slots=True)
class Failure:
    """A bounced recipient: the server's reply and an explanation."""

    message_id: str
    recipient_id: str
    email: str
    at: int
    verdict: str
    smtp_code: int | None
    response: str
    reason: str
    fault: str | None
    explanation: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of an account's mail. `before`: the same part of the previous period; `queued`: waiting recipients."""

    period: Period
    now: int
    series: Series
    totals: Totals
    before: Totals
    providers: list[Provider]
    queued: int
    oldest: inspection.QueueEntry | None
    failures: list[Failure]


async def overview(ctx: context.Context, account_id: str, period: Period) -> Overview:
    """The current state of an account's mail, and the results of a period."""
    now, shape = ctx.clock(), SHAPES[period]
    length = shape.buckets * shape.hours
    # Buckets are aligned to hours, quarter days and days, and end with the current one.
    until_hour = (hourly_counts.hour_of(now) // shape.hours + 1) * shape.hours
    from_hour = until_hour - length
    # The current bucket is incomplete, so the previous period is cut at the same point, to the nearest hour.
    until_before = hourly_counts.hour_of(now + times.HOUR // 2) - length
    async with ctx.store.scanning(account_id) as tx:
        account = await stored_accounts.by_id(tx, account_id)
        if account is None:
            raise accounts.not_found()
        recent = await hourly_counts.sums(tx, account_id, from_hour=from_hour, until_hour=until_hour, hours=shape.hours)
        before = await hourly_counts.sums(
            tx, account_id, from_hour=from_hour - length, until_hour=until_before, hours=length
        )
        first = await queue_views.first(tx, account_id)
        current = await conditions.read(tx, now=now)
        refused = await attempts.latest_refused(tx, account_id, limit=LATEST_FAILURES)
    return Overview(
        period=period,
        now=now,
        series=_series(recent, shape, from_hour=from_hour),
        totals=_total(recent),
        before=_total(before),
        providers=_providers(recent),
        # Each recipient that is not final holds a credit, and no other does: `postroad verify` proves it.
        queued=account.reserved,
        oldest=inspection.account_entry(ctx, first, current, now=now) if first else None,
        failures=[_failure(one) for one in refused],
    )


async def change_fingerprint(ctx: context.Context, account_id: str) -> bytes:
    """A short value that changes when mail is accepted, a result is recorded, or a webhook is delivered.

    A result recorded an hour late shows in the credits. A webhook delivery older than the newest ones does not show.
    """
    from_hour = hourly_counts.hour_of(ctx.clock()) - 1
    async with ctx.store.reading() as tx:
        account = await stored_accounts.by_id(tx, account_id)
        counts = await hourly_counts.since(tx, account_id, from_hour=from_hour)
        deliveries = await _newest_deliveries(tx, account_id)
    credits = (account.available, account.reserved, account.status) if account else ()
    # The hour is included: what leaves the window must not hide what enters it.
    text = repr((from_hour, credits, tuple(counts), [tuple(one) for one in deliveries]))
    return hashlib.blake2b(text.encode(), digest_size=PULSE_BYTES).digest()


async def _newest_deliveries(tx: store.Transaction, account_id: str) -> list[store.Row]:
    return [
        row
        for endpoint in await webhooks.of_account(tx, account_id)
        for row in await webhook_deliveries.newest(tx, account_id, endpoint.id, limit=PULSE_DELIVERIES)
    ]


def _total(sums: Sequence[hourly_counts.BucketTotal]) -> Totals:
    return Totals(
        messages=sum(one.messages for one in sums),
        recipients=sum(one.recipients for one in sums),
        delivered=sum(one.delivered for one in sums),
        bounced=sum(one.bounced for one in sums),
        failed=sum(one.failed for one in sums),
        deferred=sum(one.deferred for one in sums),
    )


def _series(sums: Sequence[hourly_counts.BucketTotal], shape: Bucketing, *, from_hour: int) -> Series:
    by_place: list[list[hourly_counts.BucketTotal]] = [[] for _ in range(shape.buckets)]
    for one in sums:
        by_place[one.bucket].append(one)
    buckets = [_total(found) for found in by_place]
    return Series(
        starts=[(from_hour + place * shape.hours) * times.HOUR for place in range(shape.buckets)],
        messages=[bucket.messages for bucket in buckets],
        recipients=[bucket.recipients for bucket in buckets],
        delivered=[bucket.delivered for bucket in buckets],
        bounced=[bucket.bounced for bucket in buckets],
        failed=[bucket.failed for bucket in buckets],
        deferred=[bucket.deferred for bucket in buckets],
    )


def _providers(sums: Sequence[hourly_counts.BucketTotal]) -> list[Provider]:
    """Highest refusal rate first; then those with few results, most refusals first.

    Results that no server decided belong to no provider.
    """
    by_name: dict[str, list[hourly_counts.BucketTotal]] = {}
    for one in sums:
        if one.provider:
            by_name.setdefault(one.provider, []).append(one)
    totals = {name: _total(found) for name, found in by_name.items()}
    found = [Provider(name, of.delivered, of.bounced, of.failed, of.deferred) for name, of in totals.items()]
    return sorted(found, key=_sort_key)


def _sort_key(one: Provider) -> tuple[float | str, ...]:
    share = one.refused / one.ended if one.ended >= MIN_RESULTS else -1
    return -share, -one.refused, -one.deferred, -one.delivered, one.name


def _failure(refused: attempts.FinalRefusal) -> Failure:
    return Failure(
        message_id=refused.message_id,
        recipient_id=refused.recipient_id,
        email=refused.email,
        at=refused.started_at,
        verdict=refused.verdict,
        smtp_code=refused.smtp_code,
        response=refused.response,
        reason=refused.reason,
        fault=refused.fault,
        explanation=disposition.explain(refused.reason),
    )
