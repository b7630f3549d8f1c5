"""Warnings that many messages would repeat: each is logged at most once a minute."""

from collections.abc import Callable
from typing import Any, Final

from postroad.concurrency import lru
from postroad.model import times
from postroad.telemetry import logs

INTERVAL: Final = 60 * times.SECOND
# An evicted one is only logged again.
MAX_WARNINGS: Final = 1_000


class LimitedWarnings:
    """Logs a warning unless it was logged under the same name within the interval."""

    def __init__(self, log: logs.Logger, clock: Callable[[], int]) -> None:
        self._log = log
        self._clock = clock
        self._logged_at: lru.LruCache[tuple[str, str], int] = lru.LruCache(MAX_WARNINGS)

    def warning(self, event: str, name: str, /, **fields: Any) -> None:
        """Log the event, which is about something of this name."""
        now = self._clock()
        logged_at = self._logged_at.get((event, name))
        if logged_at is None or not logged_at <= now < logged_at + INTERVAL:
            self._logged_at.put((event, name), now)
            self._log.warning(event, **fields)
