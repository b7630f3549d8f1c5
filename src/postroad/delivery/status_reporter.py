"""Tells the store how pools stand, so that an operator can see why mail waits, whichever process it waits in.

Only pools that are not simply open are told of. What is told is repeated now and then: a worker that is not heard of
any more is dead, and so is what it said.
"""

import asyncio
from typing import Final

from postroad.delivery import dispatcher as delivery_dispatcher
from postroad.delivery import hosts, leases
from postroad.model import times
from postroad.services import context
from postroad.storage import group_commit, provider_queues
from postroad.telemetry import logs

CHECK_SECONDS: Final = 1.0
REPEAT_SECONDS: Final = 30


class PoolStatusReporter:
    """Compares how pools stand with what the store was told."""

    def __init__(
        self,
        ctx: context.Context,
        dispatcher: delivery_dispatcher.Dispatcher,
        known: hosts.Hosts,
        held: leases.Leases,
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._dispatcher = dispatcher
        self._hosts = known
        self._worker = held.worker
        self._log = log
        self._reported: dict[str, provider_queues.Pool] = {}

    async def run_forever(self) -> None:
        """Tell, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.publish()
            except group_commit.TROUBLE as error:
                self._log.warning("pools_not_told", error=error.message)

    async def publish(self) -> None:
        """Tell what has changed, and what was told long ago."""
        statuses = self._statuses()
        changed = [pool for name, pool in statuses.items() if self._has_changed(self._reported.get(name), pool)]
        gone = self._reported.keys() - statuses.keys()
        if changed or gone:
            async with self._ctx.store.transaction() as tx:
                await provider_queues.put(tx, changed)
                await provider_queues.remove(tx, self._worker, sorted(gone))
            self._reported = {
                **{name: pool for name, pool in self._reported.items() if name in statuses},
                **{p.name: p for p in changed},
            }

    async def close(self) -> None:
        """Take back everything that was told."""
        try:
            async with self._ctx.store.transaction() as tx:
                await provider_queues.remove_worker(tx, self._worker)
        except group_commit.TROUBLE as error:
            self._log.warning("pools_not_told", error=error.message)

    def _statuses(self) -> dict[str, provider_queues.Pool]:
        now = asyncio.get_running_loop().time()
        statuses: dict[str, provider_queues.Pool] = {}
        for name, route in self._dispatcher.routes.items():
            one = self._dispatcher.pools[name]
            blocked_until = self._hosts.blocked_until(route)
            paused_until = one.adaptive_rate.paused_until(now)
            if blocked_until is not None:
                statuses[name] = self._status(name, "blocked", one.last_error, blocked_until - now)
            elif paused_until is not None:
                statuses[name] = self._status(name, "paused", one.last_error, paused_until - now)
            elif one.adaptive_rate.state(now) == "slowed":
                statuses[name] = self._status(name, "slowed", one.last_error, 0)
        return statuses

    def _status(self, name: str, state: str, reason: str, seconds: float) -> provider_queues.Pool:
        now = self._ctx.clock()
        return provider_queues.Pool(self._worker, name, state, reason, now + int(seconds * times.SECOND), now)

    def _has_changed(self, before: provider_queues.Pool | None, pool: provider_queues.Pool) -> bool:
        if before is None or (before.state, before.reason) != (pool.state, pool.reason):
            return True
        # The end of a pause is computed from two clocks and wavers a little.
        moved = abs(before.until - pool.until) > times.SECOND and pool.state != "slowed"
        return moved or pool.updated_at - before.updated_at > REPEAT_SECONDS * times.SECOND
