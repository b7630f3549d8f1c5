"""The mail of a day: many accounts of very different size over the hours, and those that send a lot at a time.

Every send passes the real rate limit of its credential. A refused one is sent again a moment later, and one of an
account that the bounce guard has suspended is not.
"""

import asyncio
import collections
import itertools
import math
import random
import typing

from benchmarks.simulation import (
    internet,
    measurements,
    queue_table,
    scenario,
    simulated_host,
    simulated_store,
)
from postroad.model.delivery import throttle
from postroad.model.units import times
from postroad.storage.mail import queue
from postroad.storage.people import accounts

# Mail of a moment arrives together.
TICK_SECONDS = 0.1
URGENT_MINUTES = 10


class Traffic:
    """Sends the mail of a day to the hosts."""

    def __init__(
        self,
        day: scenario.Scenario,
        *,
        hosts: typing.Sequence[simulated_host.Host],
        database: simulated_store.Database,
        seen: measurements.Measurements,
        rate: throttle.RateLimit,
    ) -> None:
        self._day, self._hosts, self._database, self._seen, self._rate = day, hosts, database, seen, rate
        self._chance = random.Random(random.getrandbits(64))
        self._numbers = itertools.count()
        self._full_at: dict[str, int] = collections.defaultdict(int)
        self.names = [f"a{number:04d}" for number in range(day.accounts)]
        # The size of accounts follows Zipf's law: the largest of 2,000 sends an eighth of the mail.
        self._weights = list(itertools.accumulate(1 / (place + 1) for place in range(day.accounts)))
        self._kinds = list(day.kinds)
        self._kind_weights = list(itertools.accumulate(kind.share for kind in day.kinds))
        for name in (*self.names, *(sender.name for sender in day.senders)):
            database.accounts[name] = simulated_store.Account(name)

    @property
    def well_behaved(self) -> list[str]:
        """The accounts whose service counts."""
        return [*self.names, *(sender.name for sender in self._day.senders if not sender.is_hostile)]

    async def run(self) -> None:
        """Send the mail of the day."""
        counted = sum(round(self._day.messages * sender.share) for sender in self._day.senders)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._send_steadily(self._day.messages - counted))
            for sender in self._day.senders:
                group.create_task(self._send_at_once(sender))

    async def _send_steadily(self, messages: int) -> None:
        loop = asyncio.get_running_loop()
        sent = 0
        while sent < messages:
            now = loop.time()
            due = min(messages, round(messages * self._part(min(1.0, now / self._day.seconds))))
            if due > sent:
                names = self._chance.choices(self.names, cum_weights=self._weights, k=due - sent)
                kinds = self._chance.choices(self._kinds, cum_weights=self._kind_weights, k=due - sent)
                self._submit([(name, kind, kind.unknown) for name, kind in zip(names, kinds, strict=True)])
                sent = due
            await asyncio.sleep(TICK_SECONDS)

    def _part(self, of_day: float) -> float:
        """The part of the day's mail that is sent by then: least at midnight, most at noon."""
        swing = self._day.busy - 1
        return of_day - swing * math.sin(2 * math.pi * of_day) / (2 * math.pi)

    async def _send_at_once(self, sender: scenario.Sender) -> None:
        await asyncio.sleep(sender.begins)
        left, due = round(self._day.messages * sender.share), 0.0
        chosen = [kind for kind in self._kinds if kind.name == sender.kind] or self._kinds
        weights = list(itertools.accumulate(kind.share for kind in chosen))
        while left > 0 and self._database.accounts[sender.name].status != accounts.SUSPENDED:
            due += sender.per_second * TICK_SECONDS
            count = min(left, int(due))
            kinds = self._chance.choices(chosen, cum_weights=weights, k=count)
            left -= count
            due -= count
            self._submit([(sender.name, kind, sender.unknown or kind.unknown) for kind in kinds])
            await asyncio.sleep(TICK_SECONDS)

    def _submit(self, sends: typing.Sequence[tuple[str, scenario.Kind, float]]) -> None:
        """Send to the hosts that live, each as one commit."""
        alive = [host for host in self._hosts if not host.store.is_dead]
        rows: dict[int, list[queue_table.Row]] = collections.defaultdict(list)
        later: list[tuple[str, scenario.Kind, float]] = []
        now = alive[0].clock()
        for name, kind, unknown in sends:
            if self._database.accounts[name].status == accounts.SUSPENDED:
                self._seen.refused["suspended"] += 1
                continue
            decision = throttle.take(self._rate, full_at=self._full_at[name], now=now)
            self._full_at[name] = decision.full_at
            if not decision.allowed:
                self._seen.refused["rate"] += 1
                later.append((name, kind, unknown))
                continue
            rows[self._chance.randrange(len(alive))].append(self._row(name, kind, unknown, now))
        for place, together in rows.items():
            alive[place].accept(together)
        if later:
            asyncio.get_running_loop().call_later(TICK_SECONDS, self._submit, later)

    def _row(self, name: str, kind: scenario.Kind, unknown: float, now: int) -> queue_table.Row:
        number = f"{next(self._numbers):08x}"
        domain = kind.domain
        if kind.domains > 1:
            # Some domains get much more mail than others.
            domain = domain.format(number=int(kind.domains ** self._chance.random()) - 1)
        recipient = internet.Recipient(number, self._chance.random() >= unknown, name)
        row = queue_table.Row(number, name, queue.queue_key_of(domain, name), recipient.address(domain))
        if self._day.urgent and self._chance.random() < self._day.urgent:
            row.expires_at = now + URGENT_MINUTES * 60 * times.SECOND
        return row
