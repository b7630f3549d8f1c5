"""What was accepted and what became of it, by account, hour (UTC) and mailbox provider: what charts are made of.

Written in the transaction of the mail itself, under the account's lock: so what a chart shows did happen, and once.
"""

from collections.abc import Iterable, Sequence

import msgspec

from postroad.model import times
from postroad.storage import store

SWEEP_ROWS = 1_000


class CountIncrement(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be counted in an hour. What has no provider, such as all that was accepted, has an empty one."""

    account_id: str
    hour: int
    provider: str = ""
    messages: int = 0
    recipients: int = 0
    delivered: int = 0
    bounced: int = 0
    failed: int = 0
    deferred: int = 0


class BucketTotal(msgspec.Struct, frozen=True):
    """What a provider has come to in a stretch of hours; `place` is which stretch it is, from 0."""

    place: int
    provider: str
    messages: int
    recipients: int
    delivered: int
    bounced: int
    failed: int
    deferred: int


def hour_of(time: int) -> int:
    """The UTC hour of a time, in hours since 1970."""
    return time // times.HOUR


async def add(tx: store.Transaction, rows: Sequence[CountIncrement]) -> None:
    """Count more."""
    await tx.execute_many("traffic.add", _merged(rows))


async def sums(
    tx: store.Transaction, account_id: str, *, from_hour: int, until_hour: int, hours: int
) -> list[BucketTotal]:
    """What an account has come to from one hour until another one, by stretches of so many hours; not what is zero."""
    rows = await tx.fetch("traffic.sums", account_id, from_hour, until_hour, hours)
    return [BucketTotal(*row) for row in rows]


async def since(tx: store.Transaction, account_id: str, *, from_hour: int) -> Sequence[int | None]:
    """The six counts of an account from an hour on; None where there is nothing."""
    row = await tx.fetch_one("traffic.since", account_id, from_hour)
    return tuple(row or ())


async def sweep(tx: store.Transaction, *, until_hour: int) -> int:
    """Forget hours up to this one that nobody looks at any more, some at a time; returns how many rows went."""
    return await tx.execute("traffic.sweep", until_hour, SWEEP_ROWS)


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
