"""Stores the status of provider queues, so that operators see why mail waits, whichever process it waits in.

Only provider queues that are blocked, paused or slowed are reported, each for its source address, and together with the
mildest state if that is so for all of their source addresses. Reports are repeated: those of a worker that has stopped
reporting are stale.
"""

import asyncio
from typing import Final

import msgspec

from postroad.delivery import hosts, known_provider_queues, leases
from postroad.model import times
from postroad.services import context
from postroad.storage import provider_queues, store
from postroad.telemetry import logs

CHECK_SECONDS: Final = 1.0
REPEAT_SECONDS: Final = 30


class StatusReporter:
    """Reports changes of status."""

    def __init__(
        self,
        ctx: context.Context,
        known: known_provider_queues.KnownProviderQueues,
        known_hosts: hosts.Hosts,
        held: leases.Leases,
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._provider_queues = known
        self._hosts = known_hosts
        self._worker = held.worker
        self._log = log
        self._reported: dict[str, provider_queues.Status] = {}

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
                await provider_queues.put(tx, changed)
                await provider_queues.remove(tx, self._worker, sorted(gone))
            self._reported = {
                **{name: status for name, status in self._reported.items() if name in statuses},
                **{p.name: p for p in changed},
            }

    async def close(self) -> None:
        """Remove all reports of this worker."""
        try:
            async with self._ctx.store.transaction() as tx:
                await provider_queues.remove_worker(tx, self._worker)
        except store.UNAVAILABLE as error:
            self._log.warning("provider_status_report_failed", error=error.message)

    def _statuses(self) -> dict[str, provider_queues.Status]:
        now = asyncio.get_running_loop().time()
        statuses: dict[str, provider_queues.Status] = {}
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
        self, statuses: dict[str, provider_queues.Status], open_ones: set[str]
    ) -> dict[str, provider_queues.Status]:
        """The same with that of each provider queue that no source address is open for."""
        for status in sorted(statuses.values(), key=lambda one: -provider_queues.SEVERITY[one.state]):
            name = status.provider_queue
            if status.source and name not in open_ones:
                statuses[name] = msgspec.structs.replace(status, name=name)
        return statuses

    def _status(self, name: str, state: str, reason: str, seconds: float) -> provider_queues.Status:
        now = self._ctx.clock()
        return provider_queues.Status(self._worker, name, state, reason, now + int(seconds * times.SECOND), now)

    def _has_changed(self, before: provider_queues.Status | None, status: provider_queues.Status) -> bool:
        if before is None or (before.state, before.reason) != (status.state, status.reason):
            return True
        # The end of a pause is computed from two clocks and varies a little.
        moved = abs(before.until - status.until) > times.SECOND and status.state != "slowed"
        return moved or status.updated_at - before.updated_at > REPEAT_SECONDS * times.SECOND
