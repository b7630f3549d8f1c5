"""The sending rate of one provider queue: within its limits, adapted to what the provider accepts.

Allowed connections grow from two, one more for each success, and halve when connecting fails, so that a dead
destination ties up little. Messages start at an even rate (GCRA, as in `throttle`, but with fractions of a message per
second). A provider that asks to slow down gets a pause, then half of the previous rate; every ten seconds of success
restore a tenth of the limits. Times are seconds of a monotonic clock.
"""

from typing import Final, Protocol

FIRST_CONNECTIONS: Final = 2
# How far messages may run ahead of the even rate, so that a late timer does not lower it.
BURST_SECONDS: Final = 0.1
# The share of its limits that a provider queue has, in percent. Below the minimum, only pauses slow it down.
FULL_SHARE: Final = 100
MIN_SHARE: Final = 1
# A "slow down" within this time answers a message that was under way already; it does not count again.
SETTLE_SECONDS: Final = 5.0
FIRST_PAUSE_SECONDS: Final = 5.0
# A provider may ask for more: the recipients concerned wait that long, the others try again by then.
MAX_PAUSE_SECONDS: Final = 600.0
# 2 to this power times the first pause is beyond the longest.
MAX_DOUBLINGS: Final = 7
RECOVERY_SHARE: Final = 10
RECOVERY_SECONDS: Final = 10.0
# After this long without a success, an old "slow down" is no longer evidence.
RESET_SECONDS: Final = 3600.0


class Limits(Protocol):
    """What an operator allows a provider queue. `messages_per_connection` is for its workers."""

    @property
    def connections(self) -> int: ...
    @property
    def messages_per_second(self) -> int: ...
    @property
    def messages_per_connection(self) -> int: ...


class AdaptiveRate:
    """The rate of one provider queue."""

    __slots__ = (
        "_ceiling",
        "_interval",
        "_next_at",
        "_paused_until",
        "_recover_at",
        "_settling_until",
        "_share",
        "_slow_downs",
        "allowed_connections",
        "limits",
        "successes",
    )

    def __init__(self, limits: Limits) -> None:
        self.allowed_connections = FIRST_CONNECTIONS  # may be open or opening
        self.successes = 0
        self._next_at = 0.0  # when the next message is due at the even rate
        self._paused_until = self._settling_until = self._recover_at = 0.0
        self._slow_downs = 0
        self._share = FULL_SHARE
        self.set_limits(limits)

    def set_limits(self, limits: Limits) -> None:
        """Replace the limits; a reduced share of them stays reduced."""
        self.limits = limits
        self._set_share(self._share)

    def _set_share(self, share: int) -> None:
        self._share = share
        self._interval = FULL_SHARE / (self.limits.messages_per_second * share)
        self._ceiling = max(1, self.limits.connections * share // FULL_SHARE)
        self.allowed_connections = min(self.allowed_connections, self._ceiling)

    def rate(self) -> float:
        """How many messages may start in a second, as things stand."""
        return 1 / self._interval

    def wait(self, now: float) -> float:
        """The seconds until a message may start; 0.0 when one may start now."""
        if now < self._paused_until:
            return self._paused_until - now
        return max(0.0, self._next_at - now - BURST_SECONDS)

    def take(self, now: float) -> float:
        """0.0 when a message may start now, which counts it; else the seconds to wait before asking again."""
        if now < self._paused_until or self._next_at - now - BURST_SECONDS > 0:
            return self.wait(now)
        self._next_at = max(now, self._next_at) + self._interval
        return 0.0

    def connection_failed(self, now: float) -> None:  # noqa: ARG002 - all reports have the same form
        """A host could not be reached or sent no banner."""
        self.allowed_connections = max(1, self.allowed_connections // 2)

    def succeeded(self, now: float) -> None:
        """The receiving server accepted a message."""
        self.successes += 1
        if self.allowed_connections < self._ceiling:
            self.allowed_connections += 1
        if self._share < FULL_SHARE and now >= self._recover_at:
            self._recover_at = now + RECOVERY_SECONDS
            self._slow_downs = max(0, self._slow_downs - 1)
            self._set_share(min(self._share + RECOVERY_SHARE, FULL_SHARE))

    def slow_down(self, now: float, retry_after: int | None = None) -> None:
        """The provider asked for less, perhaps naming a time in seconds."""
        pause = FIRST_PAUSE_SECONDS * 2**self._slow_downs if retry_after is None else max(1.0, retry_after)
        until = now + min(pause, MAX_PAUSE_SECONDS)
        if now < self._settling_until:
            if retry_after is not None and until > self._paused_until:
                self._pause(now, until)
            return
        self._pause(now, until)
        self._slow_downs = min(self._slow_downs + 1, MAX_DOUBLINGS)
        self.allowed_connections = max(1, self.allowed_connections // 2)
        self._set_share(max(MIN_SHARE, self._share // 2))

    def _pause(self, now: float, until: float) -> None:
        self._paused_until = until
        self._settling_until = max(self._paused_until, now + SETTLE_SECONDS)
        self._recover_at = self._paused_until + RECOVERY_SECONDS

    def paused_until(self, now: float) -> float | None:
        """When the pause ends; None when there is none."""
        return self._paused_until if now < self._paused_until else None

    def state(self, now: float) -> str:
        """`open`, `slowed` or `paused`; after `RESET_SECONDS` without mail it is open again."""
        if now < self._paused_until:
            return "paused"
        if self._share < FULL_SHARE and now >= self._recover_at + RESET_SECONDS:
            self._slow_downs = 0
            self._set_share(FULL_SHARE)
        return "open" if self._share == FULL_SHARE else "slowed"


# The circuit breaker of one host address: a host that does not answer is skipped, then probed by single attempts.
#
# | state | attempts | transition | |---|---|---| | `closed` | all | after three failures in a row → `open` | | `open` |
# none | when its time has passed → `half_open` | | `half_open` | one at a time | with a success → `closed`; with a
# failure → `open`, for twice as long |
#
# Times are seconds of a monotonic clock.

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
