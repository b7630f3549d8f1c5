"""The source address of a route: one of the pool that may send now, is not refused, and has the least to do.

Every source address has provider queues, and breakers of hosts, of its own: what a provider refuses to one address, or
how much it accepts from it, says nothing about another.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from postroad import config
from postroad.concurrency import lru
from postroad.delivery import hosts, known_sources, provider_queue, routing
from postroad.protocol.smtp import values

# Routes with their source addresses; an evicted one is only made again. At most 15 MB; 55 MB, or 240 MB with DANE, if
# the router has replaced all of them: an entry keeps its route.
MAX_ROUTES: Final = 10_000


class SourceChooser:
    """Chooses the source address of routes. `queues` are the provider queues by `Route.queue_name`."""

    def __init__(
        self,
        sources: known_sources.KnownSources,
        known_hosts: hosts.Hosts,
        queues: Mapping[str, provider_queue.ProviderQueue],
    ) -> None:
        self._sources = sources
        self._hosts = known_hosts
        self._queues = queues
        # By the identity of the route, which is kept, so that no other one gets it.
        self._routes: lru.LruCache[tuple[int, str], tuple[routing.Route, routing.Route | None]] = lru.LruCache(
            MAX_ROUTES
        )

    def choose(self, route: routing.Route, pool: str) -> routing.Route | routing.NoRoute | None:
        """The route from a source address of the pool; None when there is none that may send now."""
        if not self._sources.configured:
            return route
        usable = self._sources.usable(pool, route.provider_queue)
        found = [one for source in usable if (one := self._from(source, route)) is not None]
        if not found:
            return self._unreachable(route, pool)
        open_ones = [one for one in found if self._hosts.blocked_until(one) is None]
        return min(open_ones or found, key=self._busyness)

    def _from(self, source: config.Source, route: routing.Route) -> routing.Route | None:
        """The route from a source address, with the hosts that it can reach; None when there are none."""
        key = (id(route), source.name)
        known = self._routes.get(key)
        if known is None or known[0] is not route:
            reached = [one for one in route.hosts if (":" in one.address) == source.is_ipv6]
            named = tuple(dataclasses.replace(one, source=source.name) for one in reached)
            known = (route, dataclasses.replace(route, hosts=named, source=source.name) if named else None)
            self._routes.put(key, known)
        return known[1]

    def _busyness(self, route: routing.Route) -> tuple[bool, bool, int, float]:
        one = self._queues.get(route.queue_name)
        is_refused = self._sources.is_refused(route.source, route.provider_queue)
        return (
            (False, is_refused, 0, 0.0) if one is None else (not one.capacity_left(), is_refused, one.load, one.used_at)
        )

    def _unreachable(self, route: routing.Route, pool: str) -> routing.NoRoute | None:
        """Why no source address of the pool can ever reach the route; None when one may do so later."""
        every: Sequence[config.Source] = [one for one in self._sources.configured if one.pool == pool]
        if not every or any(self._from(one, route) is not None for one in every):
            return None
        detail = f"no source address of pool {pool} can reach {route.hosts[0].address}"
        return routing.NoRoute(values.Cause.DNS_FAILED, detail, route.valid_until)
