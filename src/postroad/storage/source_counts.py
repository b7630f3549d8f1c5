"""Attempts by source address, mailbox provider and day (UTC), and how they ended.

Written in the transactions that record results, for installations with `[[sources]]`.
"""

from collections.abc import Sequence

import msgspec

from postroad.storage import store

SWEEP_ROWS = 1_000


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
        """All attempts."""
        return self.delivered + self.deferred + self.refused


async def add(tx: store.Transaction, rows: Sequence[SourceCount]) -> None:
    """Add to the counts, in one order everywhere."""
    await tx.execute_later("source_counts.add", sorted(msgspec.structs.astuple(row) for row in rows))


async def since(tx: store.Transaction, day: int) -> list[SourceCount]:
    """The counts from a day on, the oldest first."""
    return [SourceCount(*row) for row in await tx.fetch("source_counts.since", day)]


async def sweep(tx: store.Transaction, *, until_day: int) -> int:
    """Delete up to SWEEP_ROWS rows of days up to this one; returns how many."""
    return await tx.execute("source_counts.sweep", until_day, SWEEP_ROWS)
