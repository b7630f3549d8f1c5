"""Counts failed logins in this process, by the rules of `model/login_throttle.py`.

Each attempt counts twice: for the name as tried from the client's network, and for that network. It is counted before
it is checked, so that parallel attempts are throttled like sequential ones, and is withdrawn when it succeeds.
"""

import math
from collections.abc import Iterator
from typing import Final

from postroad.concurrency import lru
from postroad.model import login_throttle, times

# About 5 MB. The least recently used counter is evicted; one client alone cannot cause it, for it is throttled before.
MAX_COUNTERS: Final = 20_000

Counter = tuple[str, str | None]


class LoginFailures:
    """The counters of this process."""

    def __init__(self, *, max_counters: int = MAX_COUNTERS) -> None:
        self._clear_at: lru.LruCache[Counter, int] = lru.LruCache(max_counters)

    def wait(self, client_address: str, name: str, *, now: int) -> int:
        """Whole seconds until another attempt is allowed; 0 when it is allowed now."""
        waits = (
            login_throttle.wait(policy, clear_at=self._clear_at.get(counter) or 0, now=now)
            for counter, policy in _counters(client_address, name)
        )
        return math.ceil(max(waits) / times.SECOND)

    def count(self, client_address: str, name: str, *, now: int) -> None:
        """Count an attempt as failed."""
        for counter, policy in _counters(client_address, name):
            clear_at = self._clear_at.get(counter) or 0
            self._clear_at.put(counter, login_throttle.count(policy, clear_at=clear_at, now=now))

    def withdraw(self, client_address: str, name: str) -> None:
        """Withdraw an attempt that was counted but never checked."""
        for counter, policy in _counters(client_address, name):
            if (clear_at := self._clear_at.get(counter)) is not None:
                self._clear_at.put(counter, login_throttle.withdraw(policy, clear_at=clear_at))

    def reset(self, client_address: str, name: str) -> None:
        """After a success: clear the name's failures. The network keeps those of its other names."""
        self.withdraw(client_address, name)
        self._clear_at.discard((login_throttle.network_of(client_address), name))


def _counters(client_address: str, name: str) -> Iterator[tuple[Counter, login_throttle.FailureLimit]]:
    network = login_throttle.network_of(client_address)
    yield (network, name), login_throttle.NAME
    yield (network, None), login_throttle.NETWORK
