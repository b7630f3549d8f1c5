"""Statistics of an account: series for charts, results by provider, the queue, and the latest failures.

Nothing here scans mail. Charts use hourly counts recorded with the mail itself (`storage/mail/mail_counts.py`); the
rest are index lookups: the cost does not grow with the number of messages. What counts do not have, results by tag and
by sender domain, comes from a bounded sample.
"""

import collections
import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Final, NamedTuple

import msgspec

from postroad import context
from postroad.mail.results import complaints
from postroad.model.bounces import reasons
from postroad.model.delivery import providers
from postroad.model.mail import statuses
from postroad.model.units import chart_ranges, identifiers, times
from postroad.services.accounts import account_registry as accounts
from postroad.services.messages import queue_inspection
from postroad.storage.engine import store
from postroad.storage.mail import attempts, delivery_controls, mail_counts, queue_views, received, webhooks
from postroad.storage.people import accounts as stored_accounts

# What counts do not have, from the newest recipients of a range: results by tag or sender domain, delivery times.
#
# A sample examines a bounded number of messages and says how far back it went, so its cost does not grow with the mail.

# Read twice, for the range and the one before, in about 200 ms of processor time on SQLite.
MAX_COUNTED: Final = 10_000
# Enough for a 95th percentile of each provider, in about 15 ms: open pages ask once a second.
MAX_TIMED: Final = 2_000
_ENDED: Final[dict[str, str]] = {
    statuses.RecipientStatus.DELIVERED: "delivered",
    statuses.RecipientStatus.BOUNCED: "bounced",
    statuses.RecipientStatus.FAILED: "failed",
    statuses.RecipientStatus.EXPIRED: "failed",
}
_ENDED_BY_ATTEMPT: Final = frozenset(
    {statuses.RecipientStatus.DELIVERED, statuses.RecipientStatus.BOUNCED, statuses.RecipientStatus.FAILED}
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

    recipients: list[attempts.ScannedRecipient]
    back_to: int | None


class DeliveryTime(msgspec.Struct, frozen=True):
    """How long deliveries to a provider took, from acceptance on, in microseconds: half of them, and 95 of 100."""

    provider: str
    count: int
    p50: int
    p95: int


async def read_sample(
    ctx: context.Context,
    account_id: str,
    *,
    from_hour: int,
    until_hour: int,
    narrowing: Narrowing,
    limit: int,
) -> Sample:
    """The newest recipients of mail that was accepted between two hours."""
    scope = attempts.ScanScope(
        identifiers.at(identifiers.MESSAGE, from_hour * times.HOUR),
        identifiers.at(identifiers.MESSAGE, until_hour * times.HOUR),
        narrowing.tag,
        narrowing.domain,
    )
    async with ctx.store.scanning(account_id) as tx:
        floor = await attempts.scan_floor(tx, account_id, scope, examined=limit)
        within = scope if floor is None else replace(scope, after=floor)
        found = await attempts.newest_recipients(tx, account_id, within, limit=limit)
    oldest = found[-1].message_id if len(found) == limit else floor
    return Sample(found, None if oldest is None else identifiers.time_of(oldest, identifiers.MESSAGE))


def hourly_sample(sample: Sample, *, from_hour: int) -> list[mail_counts.BucketTotal]:
    """The sample as hourly counts, from an hour on. A recipient counts for the provider of its last attempt."""
    counts: dict[tuple[int, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    accepted = {recipient.message_id: recipient.created_at // times.HOUR for recipient in sample.recipients}
    for hour, count in collections.Counter(accepted.values()).items():
        counts[hour, ""]["messages"] += count
    # Few kinds of many recipients: what follows is done once for each kind.
    kinds = collections.Counter(
        (recipient.created_at // times.HOUR, recipient.provider_queue, recipient.status, recipient.attempt_count)
        for recipient in sample.recipients
    )
    for (hour, provider_queue, status, attempt_count), count in kinds.items():
        counts[hour, ""]["recipients"] += count
        results = counts[hour, _provider_of_row(provider_queue)]
        if status in _ENDED:
            results[_ENDED[status]] += count
        # Attempts after which there was, or will be, another one.
        results["deferred"] += count * max(0, attempt_count - int(status in _ENDED_BY_ATTEMPT))
    names = mail_counts.BucketTotal.__struct_fields__[2:]
    return [
        mail_counts.BucketTotal(hour - from_hour, provider, *(values[name] for name in names))
        for (hour, provider), values in counts.items()
    ]


def delivery_times(sample: Sample) -> list[DeliveryTime]:
    """Delivery times by provider, most deliveries first. A scheduled message is timed from its `send_at` on."""
    by_provider: dict[str, list[int]] = {}
    for recipient in sample.recipients:
        if recipient.delivered_at is not None:
            began = max(recipient.created_at, recipient.send_at or 0)
            by_provider.setdefault(_provider_of_row(recipient.provider_queue), []).append(
                max(0, recipient.delivered_at - began)
            )
    found = [
        DeliveryTime(name, len(durations), _percentile(durations, 50), _percentile(durations, 95))
        for name, durations in by_provider.items()
    ]
    return sorted(found, key=lambda delivery_time: (-delivery_time.count, delivery_time.provider))


def _provider_of_row(provider_queue: str | None) -> str:
    """The provider that a recipient counts for; empty without an attempt."""
    return providers.label_of(provider_queue) if provider_queue else ""


def _percentile(durations: Iterable[int], percent: int) -> int:
    """By nearest rank: one of the durations, at which or below so many percent of them are."""
    ordered: Sequence[int] = sorted(durations)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


LATEST_FAILURES: Final = 10
# A rate over fewer results means little: one refusal of two does not mean that a provider refuses half of all mail.
MIN_RESULTS: Final = 20
# As many as fit on a page without scrolling.
PULSE_DELIVERIES: Final = 20
# Mail that waits for longer is tried rarely.
PULSE_HOURS: Final = 24
# Where mail may have cost no credits, the queue is counted, up to here: that takes some milliseconds.
MAX_QUEUED: Final = 10_000
# What a day usually brings is seen over a week.
USUAL_DAYS: Final = 7
# More than any range has: it is one bucket.
_ALL_HOURS: Final = 10**6


class Counts(msgspec.Struct, frozen=True):
    """Accepted messages and the results of recipients."""

    messages: Annotated[int, msgspec.Meta(description="Accepted messages.")]
    recipients: Annotated[int, msgspec.Meta(description="Their recipients.")]
    delivered: Annotated[int, msgspec.Meta(description="Recipients accepted by the receiving server.")]
    bounced: Annotated[int, msgspec.Meta(description="Recipients refused permanently.")]
    failed: Annotated[int, msgspec.Meta(description="Recipients that failed or expired.")]
    deferred: Annotated[int, msgspec.Meta(description="Deferred attempts, which will be retried.")]


_COUNTED: Final = Counts.__struct_fields__


class Series(msgspec.Struct, frozen=True):
    """Counts by bucket, as in `Counts`; `starts` has the start of each."""

    starts: list[int]
    messages: list[int]
    recipients: list[int]
    delivered: list[int]
    bounced: list[int]
    failed: list[int]
    deferred: list[int]


class ProviderCounts(msgspec.Struct, frozen=True):
    """Results at one mailbox provider."""

    name: Annotated[
        str,
        msgspec.Meta(description="The mailbox provider; `others` is every destination without a provider of its own."),
    ]
    delivered: int
    bounced: int
    failed: int
    deferred: int
    blocked: Annotated[
        int, msgspec.Meta(description="Those of `bounced` and `failed` that were refused for the sender's reputation.")
    ] = 0
    complaints: Annotated[int, msgspec.Meta(description="Recipients that reported a message as spam.")] = 0

    @property
    def refused(self) -> int:
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
    totals: Counts
    before: Counts
    providers: list[ProviderCounts]
    queued: int
    oldest: queue_inspection.QueueEntry | None
    conditions: queue_inspection.Conditions
    failures: list[attempts.FinalRefusal]
    has_more_queued: bool = False
    back_to: int | None = None


class ProviderStanding(NamedTuple):
    """Recipients that a provider refused for the sender's reputation, and that complained, by provider."""

    blocked: collections.Counter[str]
    complaints: collections.Counter[str]


NO_STANDING: Final = ProviderStanding(collections.Counter(), collections.Counter())


class RangeCounts(NamedTuple):
    """The hourly counts of a range and of the one before, and where they end if not with the range."""

    recent: list[mail_counts.BucketTotal]
    before: list[mail_counts.BucketTotal]
    back_to: int | None


async def overview(
    ctx: context.Context,
    account_id: str,
    chosen: chart_ranges.Range,
    narrowing: Narrowing = ALL_MAIL,
) -> Overview:
    now = ctx.clock()
    counts = await read_counts(ctx, account_id, chosen, narrowing)
    async with ctx.store.scanning(account_id) as tx:
        account = await stored_accounts.by_id(tx, account_id)
        if account is None:
            raise accounts.not_found()
        first = await queue_views.first(tx, account_id)
        queued, has_more = await _queued(tx, account)
        current = await queue_inspection.read_conditions(ctx, tx, now=now)
        refused = await attempts.latest_refused(tx, account_id, limit=LATEST_FAILURES)
        # A sample has no causes.
        standing = NO_STANDING if narrowing else await _standing(tx, account_id, chosen)
    return Overview(
        chosen=chosen,
        now=now,
        series=_series(counts.recent, chosen),
        totals=total(counts.recent),
        before=total(counts.before),
        providers=by_provider(counts.recent, standing),
        queued=queued,
        has_more_queued=has_more,
        oldest=queue_inspection.account_entry(ctx, first, current, now=now) if first else None,
        conditions=current,
        failures=refused,
        back_to=counts.back_to,
    )


async def _standing(tx: store.Transaction, account_id: str, chosen: chart_ranges.Range) -> ProviderStanding:
    refused = await mail_counts.failures_between(
        tx, account_id, from_hour=chosen.from_hour, until_hour=chosen.until_hour
    )
    blocked: collections.Counter[str] = collections.Counter()
    for row in refused:
        if row.reason in reasons.BLOCKED:
            blocked[row.provider] += row.bounced + row.failed
    reported = await attempts.reported_at(
        tx,
        account_id,
        complaints.ACTION,
        after=identifiers.at(identifiers.MESSAGE, chosen.from_hour * times.HOUR),
        before=identifiers.at(identifiers.MESSAGE, chosen.until_hour * times.HOUR),
        limit=MAX_COUNTED,
    )
    return ProviderStanding(blocked, collections.Counter(map(providers.label_of, reported)))


async def _queued(tx: store.Transaction, account: stored_accounts.Account) -> tuple[int, bool]:
    """How many recipients wait, and whether there are more than were counted."""
    if not account.has_uncharged:
        # Each recipient that is not final holds a credit, and no other does: `postroad verify` proves it.
        return account.reserved, False
    counted = await queue_views.count(tx, account.id, limit=MAX_QUEUED + 1)
    return min(counted, MAX_QUEUED), counted > MAX_QUEUED


async def read_counts(
    ctx: context.Context, account_id: str, chosen: chart_ranges.Range, narrowing: Narrowing
) -> RangeCounts:
    """The counts of a range and of the one before: all of them, or a sample of the mail that is asked for."""
    ranges = (chosen.from_hour, chosen.until_hour), (chosen.compared_from, chosen.compared_until)
    if not narrowing:
        async with ctx.store.scanning(account_id) as tx:
            recent, before = [
                await mail_counts.hourly_sums(tx, account_id, from_hour=first, until_hour=until, hours=hours)
                for (first, until), hours in zip(ranges, (1, _ALL_HOURS), strict=True)
            ]
        return RangeCounts(recent, before, None)
    samples = []
    for first, until in ranges:
        sample = await read_sample(
            ctx,
            account_id,
            from_hour=first,
            until_hour=until,
            narrowing=narrowing,
            limit=MAX_COUNTED,
        )
        samples.append(sample)
        # An incomplete count says nothing about a change.
        if sample.back_to is not None:
            break
    counted = [hourly_sample(sample, from_hour=first) for sample, (first, _) in zip(samples, ranges, strict=False)]
    is_complete = samples[-1].back_to is None
    return RangeCounts(counted[0], counted[1] if is_complete else [], samples[0].back_to)


async def daily_recipients(ctx: context.Context, account_id: str) -> float:
    async with ctx.store.reading() as tx:
        counts = await mail_counts.hourly_since(
            tx, account_id, from_hour=mail_counts.hour_of(ctx.clock()) + 1 - 24 * USUAL_DAYS
        )
    return (counts[1] or 0) / USUAL_DAYS


async def recent(ctx: context.Context, account_id: str, *, from_hour: int) -> mail_counts.HourlyTotals:
    """The counts from an hour until now."""
    until = mail_counts.hour_of(ctx.clock()) + 1
    async with ctx.store.reading() as tx:
        rows = await mail_counts.hourly_sums(tx, account_id, from_hour=from_hour, until_hour=until, hours=1)
    return mail_counts.HourlyTotals(from_hour, rows)


async def change_fingerprint(ctx: context.Context, account_id: str) -> bytes:
    """A short value that changes with mail, results, webhook deliveries, and what operators pause and hold.

    Mail is what was sent and what came in. Counts belong to the hour of acceptance. A result of older mail shows in the
    credits, and its deferrals do not; nor does a webhook delivery older than the newest ones.
    """
    from_hour = mail_counts.hour_of(ctx.clock()) - PULSE_HOURS
    async with ctx.store.reading() as tx:
        account = await stored_accounts.by_id(tx, account_id)
        counts = await mail_counts.hourly_since(tx, account_id, from_hour=from_hour)
        deliveries = [
            tuple(row)
            for endpoint in await webhooks.of_account(tx, account_id)
            for row in await webhooks.newest_deliveries(tx, account_id, endpoint.id, limit=PULSE_DELIVERIES)
        ]
        paused = [(each.name, each.set_at) for each in await delivery_controls.listed_overrides(tx)]
        held = list(await delivery_controls.holds_in_force(tx))
        arrived = await received.of_account(tx, account_id, before=identifiers.end(identifiers.RECEIVED), limit=1)
    state = (account.available, account.reserved, account.status) if account else ()
    # The hour is included: what leaves the window must not hide what enters it.
    text = repr((from_hour, state, tuple(counts), deliveries, paused, held, [mail.id for mail in arrived]))
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def total(sums: Sequence[mail_counts.BucketTotal]) -> Counts:
    return Counts(*(sum(getattr(bucket, name) for bucket in sums) for name in _COUNTED))


def _series(sums: Sequence[mail_counts.BucketTotal], chosen: chart_ranges.Range) -> Series:
    by_place: list[list[mail_counts.BucketTotal]] = [[] for _ in chosen.starts]
    for bucket in sums:
        by_place[chosen.place_of(chosen.from_hour + bucket.bucket)].append(bucket)
    buckets = [total(found) for found in by_place]
    return Series(chosen.starts, *([getattr(bucket, name) for bucket in buckets] for name in _COUNTED))


def by_provider(sums: Sequence[mail_counts.BucketTotal], standing: ProviderStanding) -> list[ProviderCounts]:
    """Highest refusal rate first; then those with few results, most refusals first.

    Results that no server decided belong to no provider.
    """
    by_name: dict[str, list[mail_counts.BucketTotal]] = {}
    for bucket in sums:
        if bucket.provider:
            by_name.setdefault(bucket.provider, []).append(bucket)
    totals = {name: total(found) for name, found in by_name.items()}
    found = [
        ProviderCounts(
            name,
            of.delivered,
            of.bounced,
            of.failed,
            of.deferred,
            standing.blocked[name],
            standing.complaints[name],
        )
        for name, of in totals.items()
    ]
    return sorted(found, key=_sort_key)


def _sort_key(provider: ProviderCounts) -> tuple[float | str, ...]:
    share = provider.refused / provider.ended if provider.ended >= MIN_RESULTS else -1
    return -share, -provider.refused, -provider.deferred, -provider.delivered, provider.name
