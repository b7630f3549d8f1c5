"""The provider queues of this engine: made when first needed, dropped when idle, reported to the store when slowed."""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from postroad import context
from postroad.delivery.record import leases
from postroad.delivery.routes import routing
from postroad.delivery.send import message_loader, provider_queue
from postroad.model.delivery import providers
from postroad.model.units import times
from postroad.storage.engine import store
from postroad.storage.operations import processes
from postroad.telemetry import logs

# The provider queues of one process: made when mail is for them, and dropped when they have none.
#
# One that is slowed remembers what its provider asked for, so it is kept for longer. Whoever controls many domains
# could cause any number of slowed ones, so it is limited: of those of small destinations, the longest unused go.

# Up to this many, nothing is dropped.
DROP_THRESHOLD: Final = 1_000
# Of those that are idle, and slowed or paused.
MAX_SLOWED: Final = 5_000
# To find what to drop takes some 2.5 microseconds for each.
DROP_INTERVAL_SECONDS: Final = 1.0


class ProviderQueues:
    """Finds the provider queue of a route. `fall_back` gives a job without a session to another one."""

    def __init__(
        self, services: provider_queue.DeliveryServices, *, fall_back: Callable[[message_loader.Job, str], bool]
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


CHECK_SECONDS: Final = 1.0
REPEAT_SECONDS: Final = 30


class StatusReporter:
    """Reports changes of status."""

    def __init__(
        self,
        ctx: context.Context,
        known: ProviderQueues,
        known_hosts: routing.Hosts,
        held: leases.Leases,
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._provider_queues = known
        self._hosts = known_hosts
        self._worker = held.worker
        self._log = log
        self._reported: dict[str, processes.QueueStatus] = {}

    async def run_forever(self) -> None:
        """Report until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.publish()
            except store.UNAVAILABLE as error:
                self._log.warning("provider_status_report_failed", error=error.message)

    async def publish(self) -> None:
        """Report what has changed, and repeat old reports."""
        statuses = self._statuses()
        changed = [status for name, status in statuses.items() if self._has_changed(self._reported.get(name), status)]
        gone = self._reported.keys() - statuses.keys()
        if changed or gone:
            async with self._ctx.store.transaction() as tx:
                await processes.put_queues(tx, changed)
                await processes.remove_queues(tx, self._worker, sorted(gone))
            self._reported = {
                **{name: status for name, status in self._reported.items() if name in statuses},
                **{p.name: p for p in changed},
            }

    async def close(self) -> None:
        """Remove all reports of this worker."""
        try:
            async with self._ctx.store.transaction() as tx:
                await processes.remove_queues_of(tx, self._worker)
        except store.UNAVAILABLE as error:
            self._log.warning("provider_status_report_failed", error=error.message)

    def _statuses(self) -> dict[str, processes.QueueStatus]:
        now = asyncio.get_running_loop().time()
        statuses: dict[str, processes.QueueStatus] = {}
        open_ones: set[str] = set()
        for name, route in self._provider_queues.routes.items():
            one = self._provider_queues.by_name[name]
            blocked_until = self._hosts.blocked_until(route)
            paused_until = one.adaptive_rate.paused_until(now)
            if blocked_until is not None:
                statuses[name] = self._status(name, "blocked", one.last_error, blocked_until - now)
            elif paused_until is not None:
                statuses[name] = self._status(name, "paused", one.last_error, paused_until - now)
            elif one.adaptive_rate.state(now) == "slowed":
                statuses[name] = self._status(name, "slowed", one.last_error, 0)
            elif one.source:
                open_ones.add(one.name)
        return self._of_all_sources(statuses, open_ones)

    def _of_all_sources(
        self, statuses: dict[str, processes.QueueStatus], open_ones: set[str]
    ) -> dict[str, processes.QueueStatus]:
        """The same with that of each provider queue that no source address is open for."""
        for status in sorted(statuses.values(), key=lambda one: -processes.QUEUE_SEVERITY[one.state]):
            name = status.provider_queue
            if status.source and name not in open_ones:
                statuses[name] = msgspec.structs.replace(status, name=name)
        return statuses

    def _status(self, name: str, state: str, reason: str, seconds: float) -> processes.QueueStatus:
        now = self._ctx.clock()
        return processes.QueueStatus(self._worker, name, state, reason, now + int(seconds * times.SECOND), now)

    def _has_changed(self, before: processes.QueueStatus | None, status: processes.QueueStatus) -> bool:
        if before is None or (before.state, before.reason) != (status.state, status.reason):
            return True
        # The end of a pause is computed from two clocks and varies a little.
        moved = abs(before.until - status.until) > times.SECOND and status.state != "slowed"
        return moved or status.updated_at - before.updated_at > REPEAT_SECONDS * times.SECOND
