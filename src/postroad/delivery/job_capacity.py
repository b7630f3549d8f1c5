"""How many jobs a provider queue takes: what it can soon send, and urgent ones beside that.

Jobs that are being prepared count as well: capacity is reserved for each.
"""

import collections
from collections.abc import Callable
from typing import Final

from postroad.delivery import message_loader
from postroad.model import adaptive_rate

# Jobs in memory for each connection: enough to keep it busy while the next claim is on its way to disk.
JOBS_PER_CONNECTION: Final = 16
# Urgent jobs of an account, beside all others: one is under way on each connection, and one is next.
URGENT_JOBS_PER_CONNECTION: Final = 2
# A slow provider queue holds only what it can send in this time, so that new mail is not far behind.
LOOKAHEAD_SECONDS: Final = 2


class JobCapacity:
    """The capacity of one provider queue."""

    def __init__(self, rate: adaptive_rate.AdaptiveRate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self.reserved = 0
        # Urgent jobs by account, from their reservation to their end.
        self._urgent: collections.Counter[str] = collections.Counter()

    @property
    def has_urgent(self) -> bool:
        """Whether there are urgent jobs."""
        return bool(self._urgent)

    def left(self, queued: int) -> int:
        """How many more jobs fit now; 0 until half is free, because small claims cost as much as large ones."""
        if self._is_waiting():
            return 0
        connections = self._rate.allowed_connections()
        capacity = min(connections * JOBS_PER_CONNECTION, max(connections, int(self._rate.rate() * LOOKAHEAD_SECONDS)))
        free = capacity - queued - self.reserved
        return free if free * 2 >= capacity else 0

    def urgent_left(self, account_id: str) -> int:
        """How many more urgent jobs of an account fit now, however many others there are."""
        if self._is_waiting():
            return 0
        return max(0, self._rate.allowed_connections() * URGENT_JOBS_PER_CONNECTION - self._urgent[account_id])

    def reserve(self, job: message_loader.Job) -> None:
        """Reserve capacity for a job that is being prepared; it is added, or `cancel_reserved` follows."""
        self.reserved += 1
        if job.is_urgent:
            self._urgent[job.account_id] += 1

    def cancel_reserved(self, job: message_loader.Job) -> None:
        """Release reserved capacity."""
        self.reserved -= 1
        self.end(job)

    def end(self, job: message_loader.Job) -> None:
        """A job has ended, or is no longer here."""
        if job.is_urgent:
            self._urgent -= collections.Counter([job.account_id])

    def _is_waiting(self) -> bool:
        now = self._clock()
        return self._rate.paused_until(now) is not None or self._rate.wait(now) > LOOKAHEAD_SECONDS
