"""Statistics of an account: series for charts, results by provider, the queue, and the latest failures.

Nothing here scans mail. Charts use hourly counts recorded with the mail itself (storage/hourly_counts.py); the rest are
index lookups: the cost does not grow with the number of messages. What counts do not have, results by tag and by sender
domain, comes from a bounded sample.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

import msgspec

from postroad.model import chart_ranges
from postroad.services import context
from postroad.services.accounts import recipient_sample
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
# Mail that waits for longer is tried rarely.
PULSE_HOURS: Final = 24
# Where mail may have cost no credits, the queue is counted, up to here: that takes some milliseconds.
MAX_QUEUED: Final = 10_000
# What a day usually brings is seen over a week.
USUAL_DAYS: Final = 7
# More than any range has: it is one bucket.
_ALL_HOURS: Final = 10**6


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts. `deferred` counts attempts that will be repeated, the others messages and recipients."""

    messages: int = 0
    recipients: int = 0
    delivered: int = 0
    bounced: int = 0
    failed: int = 0
    deferred: int = 0


_COUNTED: Final = tuple(field.name for field in fields(Totals))


class Series(msgspec.Struct, frozen=True):
    """Counts by bucket, as in `Totals`; `starts` has the start of each."""

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


class Overview(msgspec.Struct, frozen=True):
    """The state of an account's mail. `before`: the same part of the range before; `queued`: waiting recipients.

    `has_more_queued` says that there are more than were counted. `back_to` is where the counts of a narrowed range end,
    when it has more mail than is counted.
    """

    chosen: chart_ranges.Range
    now: int
    series: Series
    totals: Totals
    before: Totals
    providers: list[Provider]
    queued: int
    oldest: inspection.QueueEntry | None
    failures: list[attempts.FinalRefusal]
    has_more_queued: bool = False
    back_to: int | None = None


class Counts(NamedTuple):
    """The hourly counts of a range and of the one before, and where they end if not with the range."""

    recent: list[hourly_counts.BucketTotal]
    before: list[hourly_counts.BucketTotal]
    back_to: int | None


async def overview(
    ctx: context.Context,
    account_id: str,
    chosen: chart_ranges.Range,
    narrowing: recipient_sample.Narrowing = recipient_sample.ALL_MAIL,
) -> Overview:
    """The current state of an account's mail, and the results of a range."""
    now = ctx.clock()
    counts = await read_counts(ctx, account_id, chosen, narrowing)
    async with ctx.store.scanning(account_id) as tx:
        account = await stored_accounts.by_id(tx, account_id)
        if account is None:
            raise accounts.not_found()
        first = await queue_views.first(tx, account_id)
        queued, has_more = await _queued(tx, account)
        current = await conditions.read(ctx, tx, now=now)
        refused = await attempts.latest_refused(tx, account_id, limit=LATEST_FAILURES)
    return Overview(
        chosen=chosen,
        now=now,
        series=_series(counts.recent, chosen),
        totals=total(counts.recent),
        before=total(counts.before),
        providers=_providers(counts.recent),
        queued=queued,
        has_more_queued=has_more,
        oldest=inspection.account_entry(ctx, first, current, now=now) if first else None,
        failures=refused,
        back_to=counts.back_to,
    )


async def _queued(tx: store.Transaction, account: stored_accounts.Account) -> tuple[int, bool]:
    """How many recipients wait, and whether there are more than were counted."""
    if not account.has_uncharged:
        # Each recipient that is not final holds a credit, and no other does: `postroad verify` proves it.
        return account.reserved, False
    counted = await queue_views.count(tx, account.id, limit=MAX_QUEUED + 1)
    return min(counted, MAX_QUEUED), counted > MAX_QUEUED


async def read_counts(
    ctx: context.Context, account_id: str, chosen: chart_ranges.Range, narrowing: recipient_sample.Narrowing
) -> Counts:
    """The counts of a range and of the one before: all of them, or a sample of the mail that is asked for."""
    ranges = (chosen.from_hour, chosen.until_hour), (chosen.compared_from, chosen.compared_until)
    if not narrowing:
        async with ctx.store.scanning(account_id) as tx:
            recent, before = [
                await hourly_counts.sums(tx, account_id, from_hour=first, until_hour=until, hours=hours)
                for (first, until), hours in zip(ranges, (1, _ALL_HOURS), strict=True)
            ]
        return Counts(recent, before, None)
    samples = []
    for first, until in ranges:
        sample = await recipient_sample.read(
            ctx,
            account_id,
            from_hour=first,
            until_hour=until,
            narrowing=narrowing,
            limit=recipient_sample.MAX_COUNTED,
        )
        samples.append(sample)
        # An incomplete count says nothing about a change.
        if sample.back_to is not None:
            break
    counted = [
        recipient_sample.hourly(sample, from_hour=first) for sample, (first, _) in zip(samples, ranges, strict=False)
    ]
    is_complete = samples[-1].back_to is None
    return Counts(counted[0], counted[1] if is_complete else [], samples[0].back_to)


async def daily_recipients(ctx: context.Context, account_id: str) -> float:
    """Recipients a day, over the last days."""
    async with ctx.store.reading() as tx:
        counts = await hourly_counts.since(
            tx, account_id, from_hour=hourly_counts.hour_of(ctx.clock()) + 1 - 24 * USUAL_DAYS
        )
    return (counts[1] or 0) / USUAL_DAYS


async def change_fingerprint(ctx: context.Context, account_id: str) -> bytes:
    """A short value that changes when mail is accepted, a result is recorded, or a webhook is delivered.

    Counts belong to the hour of acceptance. A result of older mail shows in the credits, and its deferrals do not; nor
    does a webhook delivery older than the newest ones.
    """
    from_hour = hourly_counts.hour_of(ctx.clock()) - PULSE_HOURS
    async with ctx.store.reading() as tx:
        account = await stored_accounts.by_id(tx, account_id)
        counts = await hourly_counts.since(tx, account_id, from_hour=from_hour)
        deliveries = await _newest_deliveries(tx, account_id)
    state = (account.available, account.reserved, account.status) if account else ()
    # The hour is included: what leaves the window must not hide what enters it.
    text = repr((from_hour, state, tuple(counts), [tuple(one) for one in deliveries]))
    return hashlib.blake2b(text.encode(), digest_size=PULSE_BYTES).digest()


async def _newest_deliveries(tx: store.Transaction, account_id: str) -> list[store.Row]:
    return [
        row
        for endpoint in await webhooks.of_account(tx, account_id)
        for row in await webhook_deliveries.newest(tx, account_id, endpoint.id, limit=PULSE_DELIVERIES)
    ]


def total(sums: Sequence[hourly_counts.BucketTotal]) -> Totals:
    """The sum of hourly counts."""
    return Totals(*(sum(getattr(one, name) for one in sums) for name in _COUNTED))


def _series(sums: Sequence[hourly_counts.BucketTotal], chosen: chart_ranges.Range) -> Series:
    by_place: list[list[hourly_counts.BucketTotal]] = [[] for _ in chosen.starts]
    for one in sums:
        by_place[chosen.place_of(chosen.from_hour + one.bucket)].append(one)
    buckets = [total(found) for found in by_place]
    return Series(chosen.starts, *([getattr(bucket, name) for bucket in buckets] for name in _COUNTED))


def _providers(sums: Sequence[hourly_counts.BucketTotal]) -> list[Provider]:
    """Highest refusal rate first; then those with few results, most refusals first.

    Results that no server decided belong to no provider.
    """
    by_name: dict[str, list[hourly_counts.BucketTotal]] = {}
    for one in sums:
        if one.provider:
            by_name.setdefault(one.provider, []).append(one)
    totals = {name: total(found) for name, found in by_name.items()}
    found = [Provider(name, of.delivered, of.bounced, of.failed, of.deferred) for name, of in totals.items()]
    return sorted(found, key=_sort_key)


def _sort_key(one: Provider) -> tuple[float | str, ...]:
    share = one.refused / one.ended if one.ended >= MIN_RESULTS else -1
    return -share, -one.refused, -one.deferred, -one.delivered, one.name
