"""Request rates, shared by all processes and hosts: buckets by name, such as one for the sends of each account.

Read and written under the lock of the account. The column `credential_id` has the name.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from postroad.model import throttle
from postroad.storage import store

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


class Rate(msgspec.Struct, frozen=True):
    """A row of `rates`."""

    name: str
    account_id: str
    bucket: throttle.SharedBucket


async def find(tx: store.Transaction, names: Collection[str]) -> Mapping[str, throttle.SharedBucket]:
    """The stored buckets; a missing one is full."""
    rows = await tx.fetch_many("rates.find", [(name,) for name in sorted(names)])
    return {row[0]: throttle.SharedBucket(full_at=row[1], seen_at=row[2]) for row in rows}


async def put(tx: store.Transaction, rates: Collection[Rate]) -> None:
    """Store buckets."""
    rows = [(rate.name, rate.account_id, rate.bucket.full_at, rate.bucket.seen_at) for rate in rates]
    if rows:
        await tx.execute_later("rates.put", sorted(rows))


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete up to SWEEP_ROWS buckets that were full before a time; returns how many."""
    return await tx.execute("rates.sweep", before, SWEEP_ROWS)
