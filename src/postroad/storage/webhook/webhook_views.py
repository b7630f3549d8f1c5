"""Counts of pending webhook deliveries. They read an index of all of them, so they belong in `scanning`."""

from typing import Final

import msgspec

from postroad.storage.engine import store

READY: Final = "ready"
WAITING: Final = "waiting"
HELD: Final = "held"
STATES: Final = (READY, WAITING, HELD)


class Count(msgspec.Struct, frozen=True):
    """How many deliveries are in a state, and when the first of them was or will be due."""

    state: str
    deliveries: int
    due_at: int


async def counts(tx: store.Transaction) -> dict[str, Count]:
    """The counts by state; ready deliveries of a disabled endpoint are `held`."""
    return {row[0]: Count(*row) for row in await tx.fetch("webhook_views.counts")}
