"""Concurrent requests for the same work share one execution and its result.

A flight belongs to no caller: it completes even when every waiter has been cancelled, so that its result is not lost.
Callers that name the party they work for share the number of flights fairly.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Hashable, Sequence
from typing import Any, TypeVar

from postroad import errors
from postroad.model import fair_shares

T = TypeVar("T")


class SingleFlight:
    """Work in progress by name, with a bound."""

    def __init__(self, max_pending: int, *, what: str) -> None:
        self._places = fair_shares.FairShares(max_pending)
        self._what = what
        self._pending: dict[Hashable, asyncio.Task[Any]] = {}
        self._is_closed = False

    def __contains__(self, name: Hashable) -> bool:
        return name in self._pending

    async def join(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, T]], *, party: str | None = None) -> T:
        """The result of the work of this name, which is started unless it is in progress."""
        parties = () if party is None else (fair_shares.Party(party),)
        flight: asyncio.Task[T] = self._pending.get(name) or self._begin(name, work, parties)
        return await asyncio.shield(flight)

    def start(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start the work of this name, unless it is in progress, and do not wait for it."""
        if name not in self._pending:
            self._begin(name, work, ())

    def _begin(
        self, name: Hashable, work: Callable[[], Coroutine[Any, Any, T]], parties: Sequence[fair_shares.Party]
    ) -> asyncio.Task[T]:
        if self._is_closed or not self._places.free or not self._places.take(parties):
            raise errors.ServiceUnavailable(f"too many {self._what} in progress; try again", retry_after=1)
        flight = asyncio.get_running_loop().create_task(work())
        self._pending[name] = flight
        flight.add_done_callback(functools.partial(self._end, name, parties))
        return flight

    def _end(self, name: Hashable, parties: Sequence[fair_shares.Party], flight: asyncio.Task[Any]) -> None:
        del self._pending[name]
        self._places.give_back(parties)
        if not flight.cancelled():
            flight.exception()  # the waiters got the error; if all have gone, nobody needs it

    async def close(self) -> None:
        """Start nothing more, and wait for work in progress."""
        self._is_closed = True
        await self._wait()

    async def cancel(self) -> None:
        """Cancel work in progress."""
        for flight in self._pending.values():
            flight.cancel()
        await self._wait()

    async def _wait(self) -> None:
        if self._pending:
            await asyncio.wait(self._pending.values())
