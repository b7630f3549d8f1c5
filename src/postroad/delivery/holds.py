"""What the operator holds back, as this process knows it: read once in a poll, not with every claim.

A hold takes effect within a poll. Attempts under way finish; what was claimed and not begun is released.
"""

from collections.abc import Callable

from postroad.services import context
from postroad.storage import holds, store


class KnownHolds:
    """The holds at the last read."""

    def __init__(self, ctx: context.Context, clock: Callable[[], float]) -> None:
        self._ctx = ctx
        self._clock = clock
        self._seconds = ctx.settings.delivery.poll_milliseconds / 1000
        self._valid_until = float("-inf")
        self._in_force: holds.Holds = {}
        self._released: holds.Holds = {}

    async def refresh(self, tx: store.Transaction) -> None:
        """Read the holds, unless they were read a moment ago."""
        if (now := self._clock()) < self._valid_until:
            return
        found = await holds.listed(tx)
        self._valid_until = now + self._seconds
        self._in_force = holds.by_key(found, in_force=True)
        self._released = holds.by_key(found, in_force=False)

    def covers(self, queue_key: str) -> bool:
        """Whether a scheduled queue is held."""
        return holds.covering(self._in_force, queue_key) is not None

    def was_released_since(self, queue_key: str, since: int) -> bool:
        """Whether a scheduled queue was held until after a time."""
        recent = {key: one for key, one in self._released.items() if (one.released_at or 0) > since}
        return holds.covering(recent, queue_key) is not None
