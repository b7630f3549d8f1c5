"""When leases of other workers expire, by a wall clock that may be set forward.

After a jump of an hour every lease looks expired, even those of live workers, which renew within a fraction of a lease.
So a jump is trusted only after a whole lease has passed on the monotonic clock: by then only dead workers have not
renewed. Until then time continues from before the jump. A clock that is set back is trusted at once: leases only last
longer. All times are microseconds.
"""

from typing import Final

from postroad.model import times

# What a wall clock may gain unnoticed: less than the renewal interval.
TOLERANCE: Final = 2 * times.SECOND


class LeaseClock:
    """Decides when leases of this length have expired."""

    def __init__(self, lease: int) -> None:
        self._lease = lease
        # How far the wall clock is ahead of the monotonic one, as far as it is trusted.
        self._ahead: int | None = None
        self._jumped_at: int | None = None

    def expired_before(self, *, now: int, monotonic: float) -> int:
        """Leases that end by this time have expired. `monotonic` is in seconds."""
        since = round(monotonic * times.SECOND)
        ahead = now - since
        if self._ahead is None or ahead <= self._ahead + TOLERANCE:
            self._ahead, self._jumped_at = ahead, None
            return now
        if self._jumped_at is None:
            self._jumped_at = since
        if since - self._jumped_at >= self._lease:
            self._ahead, self._jumped_at = ahead, None
            return now
        return since + self._ahead
