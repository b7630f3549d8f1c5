"""Accepted messages and their results, by account, hour of acceptance (UTC) and mailbox provider: the data of charts.

Written in the transaction of the mail itself, under the account's lock, so every event is counted exactly once.
"""

from collections.abc import Iterable, Sequence

import msgspec

from postroad.model import times
from postroad.storage import store

SWEEP_ROWS = 1_000


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


async def add(tx: store.Transaction, rows: Sequence[CountIncrement]) -> None:
    """Add to the counts."""
    await tx.execute_later("hourly_counts.add", _merged(rows))


async def sums(
    tx: store.Transaction, account_id: str, *, from_hour: int, until_hour: int, hours: int
) -> list[BucketTotal]:
    """The counts of an account between two hours, in buckets of `hours` hours; empty buckets are left out."""
    rows = await tx.fetch("hourly_counts.sums", account_id, from_hour, until_hour, hours)
    return [BucketTotal(*row) for row in rows]


async def since(tx: store.Transaction, account_id: str, *, from_hour: int) -> Sequence[int | None]:
    """The six counts of an account from an hour on; None when there are none."""
    row = await tx.fetch_one("hourly_counts.since", account_id, from_hour)
    return tuple(row or ())


async def by_provider(tx: store.Transaction, *, from_hour: int) -> list[ProviderTotal]:
    """The counts of all accounts from an hour on."""
    return [ProviderTotal(*row) for row in await tx.fetch("hourly_counts.by_provider", from_hour)]


async def bytes_by_account(tx: store.Transaction, *, from_hour: int, recipient_bytes: int) -> dict[str, int]:
    """What the mail that was accepted from an hour on takes, by account, with so much for each recipient."""
    rows = await tx.fetch("hourly_counts.bytes_by_account", from_hour, recipient_bytes)
    return {str(account_id): int(size) for account_id, size in rows}


async def sweep(tx: store.Transaction, *, until_hour: int) -> int:
    """Delete up to SWEEP_ROWS rows of hours up to this one; returns how many."""
    return await tx.execute("hourly_counts.sweep", until_hour, SWEEP_ROWS)


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
