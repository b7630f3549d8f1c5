"""The source addresses that this host may send from, as this process knows them: read once in a poll.

All hosts may have the same `[[sources]]`, and an address may move to another host, so each host looks which of them it
has. Mail whose pool has none that may send stays in the store, where another host may claim it.
"""

from collections.abc import Callable, Sequence
from typing import Final

from postroad import config
from postroad.network import probe

# How often a host looks which addresses it has.
OWN_SECONDS: Final = 10.0


class KnownSources:
    """The source addresses of this host."""

    def __init__(
        self,
        sources: Sequence[config.Source],
        clock: Callable[[], float],
        *,
        can_bind: Callable[[str], bool] = probe.can_bind,
    ) -> None:
        self.configured: Final = sources
        self._clock = clock
        self._can_bind = can_bind
        self._looked_at = float("-inf")
        self._here: tuple[config.Source, ...] = ()

    def refresh(self) -> None:
        """Look which addresses this host has, unless that was a moment ago."""
        if self.configured and (now := self._clock()) >= self._looked_at + OWN_SECONDS:
            self._looked_at = now
            self._here = tuple(one for one in self.configured if self._can_bind(one.address))

    def usable(self, pool: str) -> Sequence[config.Source]:
        """The source addresses of a pool that this host may send from now."""
        return [one for one in self._here if one.pool == pool]
