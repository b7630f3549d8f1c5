"""The killer: goes through the matrix of boundaries, kills, and starts again; on PostgreSQL it does worse as well.

Before each kill some submissions are answered, so that there is always work to lose. An order that no transaction has
carried out in time is a kill at any moment: that is what the tally calls it.
"""

import asyncio
import collections
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.chaos import boundaries, hosts, load

# A kill at any moment, after each so many at boundaries.
ANY_EVERY: Final = 4
# The share of these that hits one frontend instead of its writer, where there are frontends.
FRONTEND_SHARE: Final = 0.5
# On PostgreSQL, each disturbance after so many kills.
DISTURB_EVERY: Final = 12
ANSWERS: Final = range(1, 8)
ANSWER_SECONDS: Final = 5.0
MOMENT_SECONDS: Final = 0.5

# Something that happens to the store, and how often it did what.
Disturbance = Callable[[], Awaitable[Mapping[str, int]]]


@dataclass(slots=True)
class FaultInjector:
    """Who kills, and what was hit."""

    processes: Sequence[hosts.Host]
    sent: load.Load
    chance: random.Random
    disturbances: Sequence[Disturbance] = ()
    # By kind and moment.
    kills: collections.Counter[tuple[str, str]] = field(default_factory=collections.Counter)
    # How many had frontends, and were killed without them.
    writers: int = 0
    disturbed: collections.Counter[str] = field(default_factory=collections.Counter)

    async def kill(self, count: int, *, until: float, tell: Callable[[str], None]) -> None:
        """So many kills, or as many as there is time for."""
        loop = asyncio.get_running_loop()
        orders: list[boundaries.Order] = []
        for step in range(1, count + 1):
            if self.kills.total() >= count or loop.time() > until:
                return
            orders = orders or boundaries.every_order(self.chance)
            await self._some_are_answered()
            await self.strike(None if step % ANY_EVERY == 0 else orders.pop())
            if step % DISTURB_EVERY == 0:
                await self.disturb()
            if step % 10 == 0:
                tell(f"{self.kills.total()} kills, {self.sent.acknowledged} submissions accepted")

    async def strike(self, order: boundaries.Order | None, *, seconds: float | None = None) -> None:
        """Kill one process, there or at any moment, and start it again; `seconds` bounds the wait for the moment."""
        if order is None:
            host = self.chance.choice(self.processes)
            await host.wait_for_exit(self.chance.uniform(0, MOMENT_SECONDS))
            if host.has_frontends and self.chance.random() < FRONTEND_SHARE:
                await host.kill_a_frontend(self.chance)
        else:
            kind = boundaries.KINDS[order.kind]
            host = self.chance.choice([one for one in self.processes if kind.role in one.roles])
            if kind.at_start:
                await self._reap(host)
            host.order(order)
            if kind.at_start:
                await host.start()
            await host.wait_for_exit(kind.seconds if seconds is None else seconds)
        await self._reap(host)
        await host.start()

    async def disturb(self) -> None:
        """Everything else that can happen, each once."""
        for happen in self.disturbances:
            await self._some_are_answered()
            self.disturbed.update(await happen())

    async def _reap(self, host: hosts.Host) -> None:
        place = await host.reap()
        self.kills[place] += 1
        self.writers += host.has_frontends and place[0] != boundaries.A_FRONTEND

    async def _some_are_answered(self) -> None:
        """Some submissions, or a while without any."""
        loop = asyncio.get_running_loop()
        goal, until = self.sent.answers + self.chance.choice(ANSWERS), loop.time() + ANSWER_SECONDS
        while self.sent.answers < goal and loop.time() < until:
            await asyncio.sleep(hosts.POLL_SECONDS)
