"""A circuit breaker for each host address, shared by all provider queues.

An upstream and a source address have breakers of their own.

A host that does not answer is skipped for a while, so that mail goes to the next one at once. A destination whose hosts
are all down is skipped until a probe succeeds.
"""

from collections.abc import Callable, Iterator
from typing import Final

from postroad.concurrency import lru
from postroad.delivery import routing
from postroad.model import breaker

# Enough for every host that a busy installation contacts in an hour; the least recently used is evicted.
MAX_HOSTS: Final = 20_000


class Hosts:
    """The breakers of hosts."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._breakers: lru.LruCache[tuple[str, int, str, str], breaker.Breaker] = lru.LruCache(MAX_HOSTS)

    def usable(self, route: routing.Route) -> Iterator[routing.Host]:
        """The hosts to try, in order; each breaker is checked when its turn comes."""
        for host in route.hosts:
            known = self._breakers.get(host.key)
            if known is None or known.may_try(self._clock()):
                yield host

    def blocked_until(self, route: routing.Route) -> float | None:
        """When the first host of the route may be tried again; None when one may be tried now."""
        soonest: float | None = None
        for host in route.hosts:
            known = self._breakers.get(host.key)
            until = known.open_until(self._clock()) if known else None
            if until is None:
                return None
            soonest = until if soonest is None else min(soonest, until)
        return soonest

    def is_proven(self, route: routing.Route) -> bool:
        """Whether a host of the route answers, or nothing is known of it."""
        return any(
            known is None or known.state(self._clock()) == "closed"
            for host in route.hosts
            for known in (self._breakers.get(host.key),)
        )

    def answered(self, host: routing.Host) -> None:
        """The host answers."""
        if known := self._breakers.get(host.key):
            known.succeeded()

    def failed(self, host: routing.Host) -> None:
        """The host does not answer."""
        known = self._breakers.get(host.key) or breaker.Breaker()
        known.failed(self._clock())
        self._breakers.put(host.key, known)
