"""What must hold at every moment of every day. A violation is recorded with its time, and fails the run.

It is not raised as an exception, because the service survives exceptions and would only log it.

- Nothing is lost: every accepted message is queued or final.
- Nothing is delivered twice, unless the host that delivered it crashed before it recorded the result.
- No host sends a message without holding its lease.
- Limits hold: connections of a host and of a provider queue, messages on a connection, messages in a second.
- No account starves: mail of an account that is not hostile, to a destination that answers, is tried within a bound.
"""

import collections
import math
import typing

from benchmarks.simulation import queue_table
from postroad.model.delivery import adaptive_rate

CONNECT_SECONDS = 0.1
# What is kept of violations: the first ones say what went wrong.
MAX_KEPT = 20
# How much time a message may wait for its first attempt although its destination answers. The retry schedule and the
# pauses that a provider asks for do not count.
STARVATION_SECONDS = 900.0
# A message starts when the rate allows it, and reaches its destination after a connection was opened, or at once.
MAX_EARLY_SECONDS = adaptive_rate.BURST_SECONDS + CONNECT_SECONDS + 1e-6


class Invariants:
    """The checks of one day."""

    def __init__(self, table: queue_table.QueueTable, *, messages: int) -> None:
        self._table = table
        self._delivered = bytearray(messages)
        self._in_doubt: set[queue_table.Number] = set()
        self._connections: collections.Counter[tuple[int, str]] = collections.Counter()
        self._host_connections: collections.Counter[int] = collections.Counter()
        self._due: dict[tuple[int, str], float] = collections.defaultdict(lambda: -math.inf)
        self.accepted = self.final = self.duplicates = 0
        self.violations: list[str] = []

    def violated(self, now: float, what: str) -> None:
        """Note a violation."""
        if len(self.violations) < MAX_KEPT:
            self.violations.append(f"{now:.3f} s: {what}")

    def check_counts(self, now: float) -> None:
        """Nothing is lost."""
        if self.accepted != self.final + len(self._table.rows):
            self.violated(now, f"{self.accepted} accepted, but {self.final} final and {len(self._table.rows)} queued")

    def host_died(self, worker: str) -> None:
        """What it holds a lease for may have been delivered, and will be delivered again."""
        self._in_doubt |= {row.number for row in self._table.rows.values() if row.worker == worker}

    def attempt_begins(self, now: float, number: queue_table.Number, *, worker: str) -> None:
        """A message is about to be sent."""
        row = self._table.rows.get(number)
        if row is None:
            self.violated(now, f"message {number} is sent after its final result")
        elif row.worker != worker:
            self.violated(now, f"message {number} is sent by {worker} under the lease of {row.worker}")

    def waited(self, now: float, number: queue_table.Number, seconds: float) -> None:
        """A message was tried for the first time at a destination that answers."""
        if seconds > STARVATION_SECONDS:
            self.violated(now, f"message {number} has waited for {seconds:.0f} s for its first attempt")

    def delivered(self, now: float, number: queue_table.Number) -> None:
        """A destination has accepted a message."""
        place = int(number, 16)
        if self._delivered[place]:
            self.duplicates += 1
            if number not in self._in_doubt:
                self.violated(now, f"message {number} was delivered twice")
        self._delivered[place] = 1

    def connected(self, now: float, host: int, provider_queue: str, *, max_connections: int, max_of_host: int) -> None:
        """A connection is open, or opening."""
        self._connections[host, provider_queue] += 1
        self._host_connections[host] += 1
        if self._connections[host, provider_queue] > max_connections:
            self.violated(now, f"host {host} has more than {max_connections} connections to {provider_queue}")
        if self._host_connections[host] > max_of_host:
            self.violated(now, f"host {host} has more than {max_of_host} connections")

    def disconnected(self, host: int, provider_queue: str) -> None:
        """A connection is closed."""
        self._connections[host, provider_queue] -= 1
        self._host_connections[host] -= 1
        if not self._connections[host, provider_queue]:
            del self._connections[host, provider_queue]

    def connections(self) -> typing.Iterator[tuple[str, int]]:
        """How many are open, by provider queue; for each host."""
        return ((provider_queue, count) for (_, provider_queue), count in self._connections.items())

    def started(self, now: float, host: int, provider_queue: str, *, per_second: int) -> None:
        """A message reaches its destination: never sooner than the rate allows."""
        due = max(self._due[host, provider_queue], now)
        if due - now > MAX_EARLY_SECONDS:
            self.violated(now, f"host {host} starts more than {per_second} messages a second to {provider_queue}")
        self._due[host, provider_queue] = due + 1 / per_second
