"""Tells the store how pools stand, so that an operator can see why mail waits, whichever process it waits in.

Only pools that are not simply open are told of. What is told is repeated now and then: a worker that is not heard of
any more is dead, and so is what it said.
"""

import asyncio
from typing import Final

from postroad.delivery import dispatching, hosts, leases
from postroad.model import times
from postroad.services import context
from postroad.storage import group_commit, pools
from postroad.telemetry import logs

LOOK_SECONDS: Final = 1.0
REPEAT_SECONDS: Final = 30


class Reporting:
    """Compares how pools stand with what the store was told."""

    def __init__(
        self,
        ctx: context.Context,
        dispatcher: dispatching.Dispatching,
        known: hosts.Hosts,
        held: leases.Leases,
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._dispatcher = dispatcher
        self._hosts = known
        self._worker = held.worker
        self._log = log
        self._told: dict[str, pools.Pool] = {}

    async def run_forever(self) -> None:
        """Tell, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.tell()
            except group_commit.TROUBLE as trouble:
                self._log.warning("pools_not_told", error=trouble.message)

    async def tell(self) -> None:
        """Tell what has changed, and what was told long ago."""
        stand = self._stand()
        changed = [pool for name, pool in stand.items() if self._is_news(self._told.get(name), pool)]
        gone = self._told.keys() - stand.keys()
        if changed or gone:
            async with self._ctx.store.transaction() as tx:
                await pools.put(tx, changed)
                await pools.remove(tx, self._worker, sorted(gone))
            self._told = {
                **{name: pool for name, pool in self._told.items() if name in stand},
                **{p.name: p for p in changed},
            }

    async def close(self) -> None:
        """Take back everything that was told."""
        try:
            async with self._ctx.store.transaction() as tx:
                await pools.remove_worker(tx, self._worker)
        except group_commit.TROUBLE as trouble:
            self._log.warning("pools_not_told", error=trouble.message)

    def _stand(self) -> dict[str, pools.Pool]:
        now = asyncio.get_running_loop().time()
        stand: dict[str, pools.Pool] = {}
        for name, route in self._dispatcher.routes.items():
            one = self._dispatcher.pools[name]
            blocked_until = self._hosts.blocked_until(route)
            paused_until = one.pace.paused_until(now)
            if blocked_until is not None:
                stand[name] = self._pool(name, "blocked", one.last_trouble, blocked_until - now)
            elif paused_until is not None:
                stand[name] = self._pool(name, "paused", one.last_trouble, paused_until - now)
            elif one.pace.state(now) == "slowed":
                stand[name] = self._pool(name, "slowed", one.last_trouble, 0)
        return stand

    def _pool(self, name: str, state: str, reason: str, seconds: float) -> pools.Pool:
        now = self._ctx.clock()
        return pools.Pool(self._worker, name, state, reason, now + int(seconds * times.SECOND), now)

    def _is_news(self, before: pools.Pool | None, pool: pools.Pool) -> bool:
        if before is None or (before.state, before.reason) != (pool.state, pool.reason):
            return True
        # The end of a pause is computed from two clocks and wavers a little.
        moved = abs(before.until - pool.until) > times.SECOND and pool.state != "slowed"
        return moved or pool.updated_at - before.updated_at > REPEAT_SECONDS * times.SECOND
