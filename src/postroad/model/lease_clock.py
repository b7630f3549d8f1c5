"""When the leases of others are over, by a wall clock that may be set forwards.

A clock that jumps by an hour makes every lease look over, of workers too that are alive. Those renew within a part of a
lease. So a jump is not believed before a whole lease has passed by a clock that nobody sets: by then only the dead have
not renewed. Until then time goes on from where it was. A clock that is set back is believed at once: leases only last
longer. All times are microseconds.
"""

from typing import Final

from postroad.model import times

# What a wall clock may gain unnoticed: less than the part of a lease in which it is renewed.
TOLERANCE: Final = 2 * times.SECOND


class LeaseClock:
    """Judges leases that last so long."""

    def __init__(self, lease: int) -> None:
        self._lease = lease
        # How far the wall clock is ahead of the steady one, as far as it is believed.
        self._ahead: int | None = None
        self._jumped_at: int | None = None

    def expired_before(self, *, now: int, monotonic: float) -> int:
        """Leases that end by this time are over. `steady` is in seconds, by a clock that nobody sets."""
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
