"""Delays of requests and responses, so that a flood takes a share of the event loop and not all of it.

A refusal costs the service almost as much as a success, and a client that sends its next request as soon as it has an
answer gets thousands of them a second. So each party, an account or the networks around a stranger, has a pace for its
refusals, one for everything else that is not an accepted message, and one for files: accepted messages have a rate of
their own. What comes faster waits, and a connection sends nothing more until it has its answer. A client that honours
Retry-After is never delayed: a whole burst is served at once.

An account that is alone loses nothing: it is delayed only while another account is active as well.
"""

import asyncio
import enum
import time
from collections.abc import Callable, Iterable
from typing import Final

# What is served at once: forty pages, or an office that begins its day.
BURST: Final = 200
# Clients often time out after ten seconds or more.
MAX_SECONDS: Final = 2.0
# A page takes several times as long as another request: 15 ms.
PAGE_UNITS: Final = 5
# How long an account counts as active after a request.
ACTIVE_SECONDS: Final = 60.0
# Parties that are within their pace carry no information and are dropped when this many are kept.
MAX_PARTIES: Final = 10_000


class Pace(enum.Enum):
    """What is counted apart, so that a flood of one does not delay the others."""

    REFUSALS = "refusals"
    REQUESTS = "requests"
    FILES = "files"


# Units a second: at most a third of the time of a process.
RATES: Final = {Pace.REFUSALS: 50, Pace.REQUESTS: 100, Pace.FILES: 100}


class ResponseDelays:
    """The paces of each party, in this process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The account of the latest request.
        self._account_id: str | None = None
        self._shared_until = 0.0
        # When the next unit of a party is due at its pace.
        self._due: dict[tuple[str, Pace], float] = {}
        # The accounts of the pages that began in this turn of the event loop.
        self._begun: set[str] = set()

    def note_account(self, account_id: str) -> None:
        """A request of this account."""
        if account_id == self._account_id:
            return
        if self._account_id is not None:
            self._shared_until = self._clock() + ACTIVE_SECONDS
        self._account_id = account_id

    def of_account(self, account_id: str, pace: Pace, *, units: int = 1) -> float:
        """How many seconds a request of an account waits, or its answer. MAX_SECONDS is not counted: it is too much."""
        now = self._clock()
        return 0.0 if now >= self._shared_until else self._count(((account_id, 1),), pace, units, now)

    def of_stranger(self, networks: Iterable[tuple[str, int]], pace: Pace, *, units: int = 1) -> float:
        """The same for a client without a credential: the networks around it, and how many times the pace each has."""
        return self._count(networks, pace, units, self._clock())

    async def take_turn(self, account_id: str) -> None:
        """Begin a page: one of an account in each turn of the event loop, so that others have theirs in between."""
        while account_id in self._begun:  # noqa: ASYNC110 - the next turn is what it waits for
            await asyncio.sleep(0)
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._begun.clear)
        self._begun.add(account_id)

    def _count(self, parties: Iterable[tuple[str, int]], pace: Pace, units: int, now: float) -> float:
        if len(self._due) >= MAX_PARTIES:
            self._due = {party: due for party, due in self._due.items() if due > now}
        rate = RATES[pace]
        delay, after = 0.0, {}
        for party, multiple in parties:
            due = max(self._due.get((party, pace), now), now)
            # The burst of a larger network is larger too, so it lasts as long.
            delay = max(delay, due - now - BURST / rate)
            after[party, pace] = due + units / (rate * multiple)
        if delay >= MAX_SECONDS:
            return MAX_SECONDS
        self._due.update(after)
        return delay
