"""The route of a scheduled queue: by the rules of `[[routes]]`, through the first upstream that can be reached.

Upstreams whose hosts are all skipped by their breakers, or whose names cannot be looked up, are passed over as long as
another one is left. A recipient domain that does not exist is not asked for elsewhere.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from postroad.delivery import hosts, routing
from postroad.model import providers, route_rules
from postroad.storage import queue


@dataclass(frozen=True, slots=True)
class Choice:
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
        *,
        clock: Callable[[], float],
        resolve: Callable[[str, str], None],
    ) -> None:
        self._rules = rules
        self._router = router
        self._hosts = known
        self._clock = clock
        self._resolve = resolve

    def choose(self, queue_key: str) -> Choice | None:
        """The choice for a scheduled queue; None while what it depends on is looked up, and always for test mail."""
        if queue.simulation_of(queue_key) is not None:
            return None
        domain, account_id, sender_domain = queue.parts_of(queue_key)
        names = route_rules.choose(self._rules, account_id=account_id, sender_domain=sender_domain)
        if names is None:
            direct = self._known(domain, account_id)
            if not isinstance(direct, routing.Route):
                return None if direct is None else Choice(direct)
            names = route_rules.choose(
                self._rules, account_id=account_id, sender_domain=sender_domain, provider=direct.provider
            )
        found = [
            self._known(domain if name == route_rules.DIRECT else providers.upstream_queue(name), account_id)
            for name in names or ()
        ]
        return self._first_usable(found)

    def _known(self, name: str, account_id: str) -> routing.Route | routing.NoRoute | None:
        route = self._router.cached(name)
        if route is None or route.valid_until <= self._clock():  # a stale one is used while it is looked up
            self._resolve(name, account_id)
        return route

    def _first_usable(self, found: Sequence[routing.Route | routing.NoRoute | None]) -> Choice | None:
        first: Choice | None = None
        for place, route in enumerate(found):
            if route is None:
                break
            if isinstance(route, routing.Route):
                choice = Choice(route, is_blocked=self._hosts.blocked_until(route) is not None)
                if not choice.is_blocked:
                    return Choice(route, fallbacks=_routes(found[place + 1 :])) if place + 1 < len(found) else choice
            else:
                choice = Choice(route)
                if route.permanent:
                    return choice
            first = first or choice
        return first


def _routes(found: Sequence[routing.Route | routing.NoRoute | None]) -> tuple[routing.Route, ...]:
    return tuple(route for route in found if isinstance(route, routing.Route))
