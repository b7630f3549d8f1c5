"""Failed logins, counted for all processes and hosts: when the failures of each counter are forgotten.

Read and written under one lock, so that parallel attempts on several hosts are counted one after the other.
"""

from collections.abc import Collection, Mapping
from typing import Final

from postroad.storage import store

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


async def lock(tx: store.Transaction, counters: Collection[bytes]) -> Mapping[bytes, int]:
    """The stored counters, locked with all others until the transaction ends; a missing one has no failures."""
    await tx.fetch("login_failures.lock")
    rows = await tx.fetch_many("login_failures.find", [(counter,) for counter in sorted(counters)])
    return {bytes(row[0]): row[1] for row in rows}


async def put(tx: store.Transaction, clear_at: Mapping[bytes, int]) -> None:
    """Store counters."""
    if clear_at:
        await tx.execute_many("login_failures.put", sorted(clear_at.items()))


async def sweep(tx: store.Transaction, *, now: int) -> int:
    """Delete up to SWEEP_ROWS counters without failures; returns how many."""
    return await tx.execute("login_failures.sweep", now, SWEEP_ROWS)
