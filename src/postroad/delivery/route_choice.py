"""The route of a scheduled queue: by the rules of `[[routes]]`, through the first upstream that can be reached.

The rules also say from which pool its source address is (`source_choice`).

Upstreams whose hosts are all skipped by their breakers, or whose names cannot be looked up, are passed over as long as
another one is left. A recipient domain that does not exist is not asked for elsewhere.
"""

from collections.abc import Callable, Sequence

import msgspec

from postroad.delivery import hosts, routing, source_choice
from postroad.model import providers, route_rules
from postroad.storage import queue


class Choice(msgspec.Struct, frozen=True):
    """The route to take, whether its hosts may not be tried now, and the routes after it."""

    route: routing.Route | routing.NoRoute
    is_blocked: bool = False
    fallbacks: tuple[routing.Route, ...] = ()


class RouteChooser:
    """Chooses routes. `resolve` is called with a name that has to be looked up, and the account that asks."""

    def __init__(
        self,
        rules: Sequence[route_rules.Rule],
        router: routing.Router,
        known: hosts.Hosts,
        sources: source_choice.SourceChooser,
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
        rule = route_rules.choose(self._rules, account_id=account_id, sender_domain=sender_domain, tag=tag)
        if rule is None:
            direct = self._known(domain, account_id)
            if not isinstance(direct, routing.Route):
                return None if direct is None else Choice(direct)
            rule = route_rules.choose(
                self._rules, account_id=account_id, sender_domain=sender_domain, tag=tag, provider=direct.provider
            )
        assert rule is not None  # noqa: S101 - the provider is given
        found = [
            self._known(domain if name == route_rules.DIRECT else providers.upstream_queue(name), account_id)
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
