"""What waits for receivers, counted; it reads an index of all that waits, so it belongs into `scanning`."""

from typing import Final

import msgspec

from postroad.storage import store

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
    """How much is not final, by state; what is ready for an endpoint that is disabled is held."""
    return {row[0]: Count(*row) for row in await tx.fetch("webhook_views.counts")}
