"""What the operator holds back and changes, as this process knows it: read once in a poll, not with every claim.

A hold, a pause or a limit takes effect within a poll. Attempts under way finish; what was claimed and not begun is
released.
"""

from collections.abc import Callable

import msgspec

from postroad import context
from postroad.model.delivery import adaptive_rate
from postroad.storage.engine import store
from postroad.storage.mail import delivery_controls


class ChangedLimits(msgspec.Struct, frozen=True):
    """The limits of a provider queue that an operator has changed."""

    connections: int
    messages_per_second: int
    messages_per_connection: int


class HoldCache:
    """The holds, and the changes of provider queues, at the last read."""

    def __init__(self, ctx: context.Context, clock: Callable[[], float]) -> None:
        self._ctx = ctx
        self._clock = clock
        self._seconds = ctx.settings.delivery.poll_milliseconds / 1000
        self._valid_until = float("-inf")
        self._in_force: delivery_controls.Holds = {}
        self._released: delivery_controls.Holds = {}
        self._overrides: delivery_controls.Overrides = {}

    async def refresh(self, tx: store.Transaction) -> None:
        """Read them, unless they were read a moment ago."""
        if (now := self._clock()) < self._valid_until:
            return
        found = await delivery_controls.listed_holds(tx)
        changes = await delivery_controls.listed_overrides(tx)
        self._valid_until = now + self._seconds
        self._in_force = delivery_controls.hold_by_key(found, in_force=True)
        self._released = delivery_controls.hold_by_key(found, in_force=False)
        self._overrides = delivery_controls.overrides_in_force(changes, now=self._ctx.clock())

    def covers(self, queue_key: str) -> bool:
        """Whether a scheduled queue is held."""
        return delivery_controls.holds_covering(self._in_force, queue_key) is not None

    def was_released_since(self, queue_key: str, since: int) -> bool:
        """Whether a scheduled queue was held until after a time."""
        recent = {key: one for key, one in self._released.items() if (one.released_at or 0) > since}
        return delivery_controls.holds_covering(recent, queue_key) is not None

    def is_paused(self, provider_queue: str) -> bool:
        """Whether an operator has paused a provider queue."""
        override = delivery_controls.overrides_covering(self._overrides, provider_queue)
        return override is not None and bool(override.paused)

    def limits(self, provider_queue: str, of_settings: adaptive_rate.Limits) -> adaptive_rate.Limits:
        """The limits in force: those of the settings, unless an operator has changed them."""
        override = delivery_controls.overrides_covering(self._overrides, provider_queue)
        if override is None:
            return of_settings
        return ChangedLimits(
            override.connections or of_settings.connections,
            override.messages_per_second or of_settings.messages_per_second,
            override.messages_per_connection or of_settings.messages_per_connection,
        )
