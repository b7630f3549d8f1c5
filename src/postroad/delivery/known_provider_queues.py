"""The provider queues of one process: made when mail is for them, and dropped when they have none.

One that is slowed remembers what its provider asked for, so it is kept for longer. Whoever controls many domains could
cause any number of slowed ones, so it is limited: of those of small destinations, the longest unused go.
"""

from collections.abc import Callable
from typing import Final

from postroad.delivery import delivery_services, message_loader, provider_queue, routing
from postroad.model import providers

# Up to this many, nothing is dropped.
DROP_THRESHOLD: Final = 1_000
# Of those that are idle, and slowed or paused.
MAX_SLOWED: Final = 5_000
# To find what to drop takes some 2.5 microseconds for each.
DROP_INTERVAL_SECONDS: Final = 1.0


class KnownProviderQueues:
    """Finds the provider queue of a route. `fall_back` gives a job without a session to another one."""

    def __init__(
        self, services: delivery_services.DeliveryServices, *, fall_back: Callable[[message_loader.Job, str], bool]
    ) -> None:
        self._services = services
        self._fall_back = fall_back
        self._upstreams = {upstream.provider_queue: upstream for upstream in services.ctx.settings.upstreams}
        self._drop_at = float("-inf")
        self.by_name: dict[str, provider_queue.ProviderQueue] = {}  # by the `queue_name` of their routes
        self.routes: dict[str, routing.Route] = {}  # the latest of each

    def of(self, route: routing.Route) -> provider_queue.ProviderQueue:
        """The provider queue of a route, with the limits that it has now."""
        one = self.by_name.get(route.queue_name)
        settings = self._services.ctx.settings
        of_settings = self._upstreams.get(route.provider) or getattr(settings.providers, route.provider)
        limits = self._services.holds.limits(route.provider_queue, of_settings)
        if one is not None and one.adaptive_rate.limits != limits:  # by an operator, or the settings were reloaded
            one.adaptive_rate.set_limits(limits)
        if one is None:
            one = self.by_name[route.queue_name] = provider_queue.ProviderQueue(
                route.provider_queue, limits, self._services, source=route.source, fall_back=self._fall_back
            )
        self.routes[route.queue_name] = route
        return one

    def drop_idle(self) -> None:
        """Drop those that are idle and have nothing to remember, and of the others those that are too many."""
        now = self._services.clock()
        if len(self.by_name) <= DROP_THRESHOLD or now < self._drop_at:
            return
        self._drop_at = now + DROP_INTERVAL_SECONDS
        idle = [(name, one) for name, one in self.by_name.items() if one.is_idle]
        slowed = [(name, one) for name, one in idle if one.adaptive_rate.state(now) != "open"]
        small = [(name, one) for name, one in slowed if providers.label_of(one.name) == providers.OTHERS]
        small.sort(key=lambda named: named[1].used_at)
        kept = {name for name, _ in slowed} - {name for name, _ in small[: max(0, len(slowed) - MAX_SLOWED)]}
        for name, _ in idle:
            if name not in kept:
                del self.by_name[name]
                del self.routes[name]
