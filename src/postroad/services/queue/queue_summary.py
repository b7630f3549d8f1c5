"""The queue of the whole installation in numbers: by state, age, account, destination and cause.

Counting reads everything that waits, which takes seconds with millions of recipients. So a process counts in the
background and shows its last numbers with their time; whoever asks waits only a moment for new ones. A count is
followed by a pause of twenty times its duration, so that it costs the store at most a twentieth of its time.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad.concurrency import single_flight
from postroad.model import times
from postroad.model.bounces import reasons
from postroad.services import context
from postroad.storage import accounts, hourly_counts, queue_views, queue_walks
from postroad.storage import holds as stored_holds

# A response may take 300 ms; an ordinary queue is counted in less than this.
WAIT_SECONDS: Final = 0.2
MIN_REFRESH_SECONDS: Final = 2.0
REST_FACTOR: Final = 20
# Rows of each list.
LARGEST: Final = 50
# Recipients whose last attempt is looked up.
SAMPLE: Final = 2_000
# The limits of ages, and the names of what lies between them.
AGES: Final[Mapping[str, int | None]] = {
    "under_1_minute": 60 * times.SECOND,
    "under_10_minutes": 600 * times.SECOND,
    "under_1_hour": times.HOUR,
    "under_6_hours": 6 * times.HOUR,
    "under_1_day": times.DAY,
    "over_1_day": None,
}


class Summary(msgspec.Struct, frozen=True):
    """The numbers at one time. `accounts` and `domains` are the largest only; `reasons` of those that are due next."""

    at: int | None
    totals: Sequence[queue_walks.Total]
    accounts: Sequence[queue_walks.AccountTotal]
    names: Mapping[str, str]
    domains: Sequence[tuple[str, int]]
    reasons: Sequence[queue_walks.ReasonTotal]
    holds: Sequence[stored_holds.Hold]
    providers: Sequence[hourly_counts.ProviderTotal]

    @property
    def recipients(self) -> int:
        """All that wait."""
        return sum(one.recipients for one in self.totals)

    def of_selection(self, chosen: queue_walks.Selection) -> int:
        """How many a selection has; 0 if it is not among the largest."""
        if chosen.account_id and chosen.domain:
            return 0
        if chosen.account_id:
            return sum(one.recipients for one in self.accounts if one.account_id == chosen.account_id)
        if chosen.domain:
            return sum(number for domain, number in self.domains if domain == chosen.domain)
        return self.recipients

    def by_state(self) -> dict[str, int]:
        """How many are in each state."""
        return {state: sum(one.recipients for one in self.totals if one.state == state) for state in queue_views.STATES}

    def by_age(self) -> dict[str, int]:
        """How many are of each age."""
        return {name: sum(one.recipients for one in self.totals if one.age == place) for place, name in enumerate(AGES)}


NOTHING: Final = Summary(None, (), (), {}, (), (), (), ())


def explain(one: queue_walks.ReasonTotal) -> str:
    """A cause in one sentence."""
    return reasons.explain(one.reason) if one.reason else "no attempt was made yet"


class QueueSummary:
    """The last count of this process."""

    def __init__(self) -> None:
        self._flights = single_flight.SingleFlight(1, what="counts of the queue")
        self._valid_until = float("-inf")
        self._takes_long = False
        # The numbers of the last count; None while there are none yet.
        self.last: Summary | None = None

    async def read(self, ctx: context.Context) -> Summary | None:
        """New numbers, if they are there within a moment; else the last ones, or None while there are none yet.

        Where the last count took longer than that, nobody waits for the next one.
        """
        if time.monotonic() < self._valid_until:
            return self.last
        if self._takes_long:
            self._flights.start("count", lambda: self._renew(ctx))
        else:
            counting = asyncio.ensure_future(self._flights.join("count", lambda: self._count(ctx)))
            done, _ = await asyncio.wait([counting], timeout=WAIT_SECONDS)
            if done:
                return counting.result()
            counting.cancel()  # the count itself goes on
        return self.last

    async def close(self) -> None:
        """Stop counting."""
        await self._flights.cancel()

    async def _renew(self, ctx: context.Context) -> None:
        await self._count(ctx)

    async def _count(self, ctx: context.Context) -> Summary:
        began = time.monotonic()
        self.last = await _count(ctx)
        now = time.monotonic()
        self._takes_long = now - began > WAIT_SECONDS
        self._valid_until = now + max(MIN_REFRESH_SECONDS, REST_FACTOR * (now - began))
        return self.last


async def _count(ctx: context.Context) -> Summary:
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        totals = await queue_walks.totals(tx, [now - age for age in AGES.values() if age is not None])
        largest = await queue_walks.largest_accounts(tx, limit=LARGEST)
        found = [await accounts.by_id(tx, one.account_id) for one in largest]
        domains = await queue_views.domains(tx, queue_views.Filter(), limit=LARGEST)
        causes = await queue_walks.due_reasons(tx, examined=SAMPLE)
        held = await stored_holds.in_force(tx)
        providers = await hourly_counts.by_provider(tx, from_hour=hourly_counts.hour_of(now) - 1)
    names = {one.id: one.name for one in found if one is not None}
    return Summary(now, totals, largest, names, domains, causes, list(held.values()), providers)
