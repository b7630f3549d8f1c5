"""The circuit breaker of one host address: a host that does not answer is skipped, then probed by single attempts.

| state | attempts | transition |
|---|---|---|
| `closed` | all | after three failures in a row → `open` |
| `open` | none | when its time has passed → `half_open` |
| `half_open` | one at a time | with a success → `closed`; with a failure → `open`, for twice as long |

Times are seconds of a monotonic clock.
"""

from typing import Final

# One refused connection may be a restart, two a coincidence.
FAILURES_TO_OPEN: Final = 3
FIRST_OPEN_SECONDS: Final = 30.0
MAX_OPEN_SECONDS: Final = 600.0
# A probe that never reports, because its task was cancelled, is replaced after this long: a connection attempt of
# 30 seconds is over by then.
PROBE_SECONDS: Final = 60.0


class Breaker:
    """Initially closed. After `may_try` returned True, the caller reports `failed` or `succeeded`."""

    __slots__ = ("_failures", "_open_seconds", "_probe_until", "_until")

    def __init__(self) -> None:
        self._failures = 0
        self._open_seconds = 0.0  # how long it was opened the last time; 0 while closed
        self._until = 0.0
        self._probe_until = 0.0

    def may_try(self, now: float) -> bool:
        """Whether an attempt may start now. In the half-open state, True means that this attempt is the probe."""
        if not self._open_seconds:
            return True
        if now < self._until or now < self._probe_until:
            return False
        self._probe_until = now + PROBE_SECONDS
        return True

    def failed(self, now: float) -> None:
        """Count a failure. Attempts that end while the breaker is open had started before and do not count."""
        self._failures += 1
        if self._failures < FAILURES_TO_OPEN or now < self._until:
            return
        self._open_seconds = min(max(FIRST_OPEN_SECONDS, 2 * self._open_seconds), MAX_OPEN_SECONDS)
        self._until = now + self._open_seconds
        self._probe_until = 0.0

    def succeeded(self) -> None:
        """Close: the host answers, whichever attempt found out."""
        if self._failures:
            self._failures = 0
            self._open_seconds = self._until = self._probe_until = 0.0

    def open_until(self, now: float) -> float | None:
        """When an attempt may start again, at the latest; None when it may start now."""
        until = max(self._until, self._probe_until)
        return until if now < until else None

    def state(self, now: float) -> str:
        """`closed`, `open` or `half_open`."""
        if not self._open_seconds:
            return "closed"
        return "open" if now < self._until else "half_open"
