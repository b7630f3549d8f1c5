"""What the operator holds back and changes, as this process knows it: read once in a poll, not with every claim.

A hold, a pause or a limit takes effect within a poll. Attempts under way finish; what was claimed and not begun is
released.
"""

from collections.abc import Callable

import msgspec

from postroad.model import adaptive_rate
from postroad.services import context
from postroad.storage import holds, provider_overrides, store


class ChangedLimits(msgspec.Struct, frozen=True):
    """The limits of a provider queue that an operator has changed."""

    connections: int
    messages_per_second: int
    messages_per_connection: int


class KnownHolds:
    """The holds, and the changes of provider queues, at the last read."""

    def __init__(self, ctx: context.Context, clock: Callable[[], float]) -> None:
        self._ctx = ctx
        self._clock = clock
        self._seconds = ctx.settings.delivery.poll_milliseconds / 1000
        self._valid_until = float("-inf")
        self._in_force: holds.Holds = {}
        self._released: holds.Holds = {}
        self._overrides: provider_overrides.Overrides = {}

    async def refresh(self, tx: store.Transaction) -> None:
        """Read them, unless they were read a moment ago."""
        if (now := self._clock()) < self._valid_until:
            return
        found = await holds.listed(tx)
        changes = await provider_overrides.listed(tx)
        self._valid_until = now + self._seconds
        self._in_force = holds.by_key(found, in_force=True)
        self._released = holds.by_key(found, in_force=False)
        self._overrides = provider_overrides.in_force(changes, now=self._ctx.clock())

    def covers(self, queue_key: str) -> bool:
        """Whether a scheduled queue is held."""
        return holds.covering(self._in_force, queue_key) is not None

    def was_released_since(self, queue_key: str, since: int) -> bool:
        """Whether a scheduled queue was held until after a time."""
        recent = {key: one for key, one in self._released.items() if (one.released_at or 0) > since}
        return holds.covering(recent, queue_key) is not None

    def is_paused(self, provider_queue: str) -> bool:
        """Whether an operator has paused a provider queue."""
        override = provider_overrides.covering(self._overrides, provider_queue)
        return override is not None and bool(override.paused)

    def limits(self, provider_queue: str, of_settings: adaptive_rate.Limits) -> adaptive_rate.Limits:
        """The limits in force: those of the settings, unless an operator has changed them."""
        override = provider_overrides.covering(self._overrides, provider_queue)
        if override is None:
            return of_settings
        return ChangedLimits(
            override.connections or of_settings.connections,
            override.messages_per_second or of_settings.messages_per_second,
            override.messages_per_connection or of_settings.messages_per_connection,
        )
