"""Counts for charts and the bounce guard, written in the transactions that accept mail and record its results."""

import collections
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from postroad.model.bounces import bounce_guard
from postroad.model.units import times
from postroad.storage.engine import queries, store


class CountIncrement(msgspec.Struct, frozen=True, kw_only=True):
    """What to add to an hour. `provider` is empty for counts without one, such as accepted messages."""

    account_id: str
    hour: int
    provider: str = ""
    messages: int = 0
    recipients: int = 0
    delivered: int = 0
    bounced: int = 0
    failed: int = 0
    deferred: int = 0
    delivery_time: int = 0  # microseconds from queued to delivered, of all recipients together
    message_bytes: int = 0  # the sizes of the accepted messages together


class BucketTotal(msgspec.Struct, frozen=True):
    """The counts of a provider in a bucket of several hours; `bucket` is its number, from 0."""

    bucket: int
    provider: str
    messages: int
    recipients: int
    delivered: int
    bounced: int
    failed: int
    deferred: int

    @property
    def attempts(self) -> int:
        """Attempts that ended a delivery, and those that were deferred."""
        return self.delivered + self.bounced + self.failed + self.deferred


class HourlyTotals(msgspec.Struct, frozen=True):
    """The counts by hour and provider, from an hour on: `bucket` is the number of the hour after it."""

    from_hour: int
    rows: Sequence[BucketTotal] = ()


class ProviderTotal(msgspec.Struct, frozen=True):
    """The counts of a provider over all accounts; those without one have an empty name."""

    provider: str
    recipients: int
    delivered: int
    bounced: int
    failed: int
    deferred: int
    delivery_time: int = 0

    @property
    def attempts(self) -> int:
        """Attempts that ended a delivery, and those that were deferred."""
        return self.delivered + self.bounced + self.failed + self.deferred

    @property
    def mean_delivery_time(self) -> int | None:
        """Microseconds from queued to delivered; None without a delivery."""
        return self.delivery_time // self.delivered if self.delivered else None


def hour_of(time: int) -> int:
    """The UTC hour of a time, in hours since 1970."""
    return time // times.HOUR


async def add_hourly(tx: store.Transaction, rows: Sequence[CountIncrement]) -> None:
    await tx.execute_later("hourly_counts.add", _merged(rows))


# The counts of an account between two hours, in buckets of `hours` hours; empty buckets are left out.
@queries.rows("hourly_counts.sums", BucketTotal)
async def hourly_sums(
    tx: store.Transaction, account_id: str, *, from_hour: int, until_hour: int, hours: int
) -> list[BucketTotal]: ...


async def hourly_since(tx: store.Transaction, account_id: str, *, from_hour: int) -> Sequence[int | None]:
    """The six counts of an account from an hour on; None when there are none."""
    return tuple(await tx.fetch_one("hourly_counts.since", account_id, from_hour) or ())


@queries.rows("hourly_counts.by_provider", ProviderTotal)
async def hourly_by_provider(tx: store.Transaction, *, from_hour: int) -> list[ProviderTotal]: ...


@queries.rows("hourly_counts.by_hour", BucketTotal)
async def hourly_of_all(tx: store.Transaction, *, from_hour: int) -> list[BucketTotal]: ...


async def bytes_by_account(tx: store.Transaction, *, from_hour: int, recipient_bytes: int) -> dict[str, int]:
    """What the mail that was accepted from an hour on takes, by account, with so much for each recipient."""
    rows = await tx.fetch("hourly_counts.bytes_by_account", from_hour, recipient_bytes)
    return {str(account_id): int(size) for account_id, size in rows}


# Delete up to SWEEP_ROWS rows of hours up to this one; returns how many.
@queries.changes("hourly_counts.sweep")
async def sweep_hourly(tx: store.Transaction, *, until_hour: int, limit: int = store.SWEEP_ROWS) -> int: ...


def _merged(rows: Iterable[CountIncrement]) -> list[store.Row]:
    """One row for each key, because a statement can change a row only once; in one order everywhere."""
    found: dict[tuple[str, int, str], store.Row] = {}
    for row in rows:
        key, values = (row.account_id, row.hour, row.provider), msgspec.structs.astuple(row)
        before = found.get(key)
        if before is None:
            found[key] = values
        else:
            found[key] = (*key, *map(int.__add__, before[3:], values[3:]))
    return [found[key] for key in sorted(found)]


# Recipients that bounced or failed, by account, hour (UTC), mailbox provider and reason.
#
# The same recipients as in `hourly_counts`, written in the same transactions, so the sums of both agree. Delivered mail
# writes nothing here.


class FailureIncrement(msgspec.Struct, frozen=True):
    """What to add to an hour; a key occurs once in a call of `add`."""

    account_id: str
    hour: int
    provider: str
    reason: str
    bounced: int
    failed: int


class FailureTotal(msgspec.Struct, frozen=True):
    """The counts of a provider and a reason in one hour."""

    hour: int
    provider: str
    reason: str
    bounced: int
    failed: int


async def add_failures(tx: store.Transaction, rows: Sequence[FailureIncrement]) -> None:
    """Add to the counts, in one order everywhere."""
    ordered = sorted(msgspec.structs.astuple(row) for row in rows)
    await tx.execute_later("failure_counts.add", ordered)


@queries.rows("failure_counts.between", FailureTotal)
async def failures_between(
    tx: store.Transaction, account_id: str, *, from_hour: int, until_hour: int
) -> list[FailureTotal]: ...


async def failures_by_provider(
    tx: store.Transaction, chosen: Container[str], *, since_hour: int
) -> collections.Counter[str]:
    """How many recipients of all accounts were refused for these reasons."""
    found: collections.Counter[str] = collections.Counter()
    for provider, reason, recipients in await tx.fetch("failure_counts.by_provider", since_hour):
        if reason in chosen:
            found[provider] += recipients
    return found


# Delete up to SWEEP_ROWS rows of hours up to this one; returns how many.
@queries.changes("failure_counts.sweep")
async def sweep_failures(tx: store.Transaction, *, until_hour: int, limit: int = store.SWEEP_ROWS) -> int: ...


# Attempts by source address, mailbox provider and day (UTC), and how they ended.
#
# Written in the transactions that record results, for installations with `[[sources]]`.


class SourceCount(msgspec.Struct, frozen=True):
    """A row of `source_counts`, or what to add to it. `blocked` are those of the others that named our address."""

    source: str
    provider: str
    day: int
    delivered: int = 0
    deferred: int = 0
    refused: int = 0
    blocked: int = 0

    @property
    def attempts(self) -> int:
        return self.delivered + self.deferred + self.refused


async def add_sources(tx: store.Transaction, rows: Sequence[SourceCount]) -> None:
    """Add to the counts, in one order everywhere."""
    await tx.execute_later("source_counts.add", sorted(msgspec.structs.astuple(row) for row in rows))


@queries.rows("source_counts.since", SourceCount)
async def sources_since(tx: store.Transaction, day: int) -> list[SourceCount]: ...
# Delete up to SWEEP_ROWS rows of days up to this one; returns how many.
@queries.changes("source_counts.sweep")
async def sweep_sources(tx: store.Transaction, *, until_day: int, limit: int = store.SWEEP_ROWS) -> int: ...


async def add_guard_days(
    tx: store.Transaction, day: int, added: Mapping[str, bounce_guard.Counts]
) -> dict[str, bounce_guard.Counts]:
    """Add to the counts of a day, by account; returns the new counts of that day."""
    # The same order everywhere prevents deadlocks, even though the accounts are locked already.
    rows = [(who, day, counts.recipients, counts.bounces, counts.complaints) for who, counts in sorted(added.items())]
    return _by_account(await tx.fetch_many("bounce_guard_days.add", rows))


async def guard_sums(
    tx: store.Transaction, account_ids: Sequence[str], *, after_day: int
) -> dict[str, bounce_guard.Counts]:
    """The sums of these accounts for the days after this one; accounts without a row are missing."""
    rows = [(account_id, after_day) for account_id in account_ids]
    return _by_account(await tx.fetch_many("bounce_guard_days.sums", rows))


# Note that a report with this key counts; False when one has counted since `after_day`, and this must not.
# A key is a mailbox or a signature.
@queries.exists("bounce_guard_days.count_report")
async def count_guard_report(
    tx: store.Transaction, account_id: str, report_key: str, *, day: int, after_day: int
) -> bool: ...
@queries.change("bounce_guard_days.forget")
async def forget_guard_days(tx: store.Transaction, account_id: str) -> None: ...


async def sweep_guard_days(tx: store.Transaction, *, until_day: int, reports_until_day: int) -> int:
    """Delete up to SWEEP_ROWS counts and as many keys of reports up to their days; returns the larger number."""
    reports = await tx.execute("bounce_guard_days.sweep_reports", reports_until_day, store.SWEEP_ROWS)
    return max(reports, await tx.execute("bounce_guard_days.sweep", until_day, store.SWEEP_ROWS))


def _by_account(rows: Sequence[store.Row]) -> dict[str, bounce_guard.Counts]:
    return {row[0]: bounce_guard.Counts(*row[1:]) for row in rows}
