"""Which upstream, source address and provider queue a message takes: by the rules, then by what has room."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from postroad import config
from postroad.concurrency import caches
from postroad.delivery.routes import routing, source_table
from postroad.delivery.send import provider_queue
from postroad.model.delivery import providers
from postroad.protocol.smtp import values
from postroad.storage.mail import queue

# The source address of a route: one of the pool that may send now, is not refused, and has the least to do.
#
# Every source address has provider queues, and breakers of hosts, of its own: what a provider refuses to one address,
# or how much it accepts from it, says nothing about another.

# Routes with their source addresses; an evicted one is only made again. At most 15 MB; 55 MB, or 240 MB with DANE, if
# the router has replaced all of them: an entry keeps its route.
MAX_ROUTES: Final = 10_000


class SourceChooser:
    """Chooses the source address of routes. `queues` are the provider queues by `Route.queue_name`."""

    def __init__(
        self,
        sources: source_table.SourceTable,
        known_hosts: routing.Hosts,
        queues: Mapping[str, provider_queue.ProviderQueue],
    ) -> None:
        self._sources = sources
        self._hosts = known_hosts
        self._queues = queues
        # By the identity of the route, which is kept, so that no other one gets it.
        self._routes: caches.LruCache[tuple[int, str], tuple[routing.Route, routing.Route | None]] = caches.LruCache(
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


class Choice(msgspec.Struct, frozen=True):
    """The route to take, whether its hosts may not be tried now, and the routes after it."""

    route: routing.Route | routing.NoRoute
    is_blocked: bool = False
    fallbacks: tuple[routing.Route, ...] = ()


class RouteChooser:
    """Chooses routes. `resolve` is called with a name that has to be looked up, and the account that asks."""

    def __init__(
        self,
        rules: Sequence[providers.RouteRule],
        router: routing.Router,
        known: routing.Hosts,
        sources: SourceChooser,
        *,
        clock: Callable[[], float],
        resolve: Callable[[str, str], None],
    ) -> None:
        self._rules = rules
        self._router = router
        self._hosts = known
        self._sources = sources
        self._clock = clock
        self._resolve = resolve

    def choose(self, queue_key: str) -> Choice | None:
        """The choice for a scheduled queue; None while what it depends on is looked up, and always for test mail."""
        if queue.simulation_of(queue_key) is not None:
            return None
        domain, account_id, sender_domain, tag = queue.parts_of(queue_key)
        rule = providers.choose_route(self._rules, account_id=account_id, sender_domain=sender_domain, tag=tag)
        if rule is None:
            direct = self._known(domain, account_id)
            if not isinstance(direct, routing.Route):
                return None if direct is None else Choice(direct)
            rule = providers.choose_route(
                self._rules, account_id=account_id, sender_domain=sender_domain, tag=tag, provider=direct.provider
            )
        assert rule is not None  # noqa: S101 - the provider is given
        found = [
            self._known(domain if name == providers.DIRECT else providers.upstream_queue(name), account_id)
            for name in rule.upstreams
        ]
        return self._first_usable(found, rule.pool)

    def _known(self, name: str, account_id: str) -> routing.Route | routing.NoRoute | None:
        route = self._router.cached(name)
        if route is None or route.valid_until <= self._clock():  # a stale one is used while it is looked up
            self._resolve(name, account_id)
        return route

    def _first_usable(self, found: Sequence[routing.Route | routing.NoRoute | None], pool: str) -> Choice | None:
        first: Choice | None = None
        for place, known in enumerate(found):
            if known is None:
                break
            route = self._sources.choose(known, pool) if isinstance(known, routing.Route) else known
            if route is None:
                continue
            if isinstance(route, routing.Route):
                choice = Choice(route, is_blocked=self._hosts.blocked_until(route) is not None)
                if not choice.is_blocked:
                    rest = found[place + 1 :]
                    return Choice(route, fallbacks=self._fallbacks(rest, pool)) if rest else choice
            else:
                choice = Choice(route)
                if route.permanent:
                    return choice
            first = first or choice
        return first

    def _fallbacks(
        self, found: Sequence[routing.Route | routing.NoRoute | None], pool: str
    ) -> tuple[routing.Route, ...]:
        chosen = (self._sources.choose(route, pool) for route in found if isinstance(route, routing.Route))
        return tuple(route for route in chosen if isinstance(route, routing.Route))
