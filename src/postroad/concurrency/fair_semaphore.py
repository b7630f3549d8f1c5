"""A semaphore that is shared fairly: who waits gets a unit in turn, and no party can hold all of them.

`model/fair_shares.py` decides who may have another unit. Of those that wait, the party that holds least comes first,
and of equals the one that has waited longest since its last turn.
"""

import asyncio
import collections
import contextlib
from collections.abc import AsyncIterator, Hashable

from postroad.model import fair_shares


class FairSemaphore:
    """Units of a resource, held by parties such as accounts."""

    def __init__(self, units: int, *, alpha: float = fair_shares.ALPHA) -> None:
        self._shares = fair_shares.FairShares(units)
        self._alpha = alpha
        self._waiting: dict[Hashable, collections.deque[asyncio.Future[None]]] = {}

    @contextlib.asynccontextmanager
    async def hold(self, name: Hashable, *, timeout: float | None = None) -> AsyncIterator[None]:  # noqa: ASYNC109 - only of the wait
        """Wait for a unit, and hold it. Raises TimeoutError when there is none within so many seconds."""
        party = fair_shares.Party(name, self._alpha)
        if name in self._waiting or not self._shares.take((party,)):
            async with asyncio.timeout(timeout):
                await self._wait(party)
        try:
            yield
        finally:
            self._shares.give_back((party,))
            self._hand_out()

    async def _wait(self, party: fair_shares.Party) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(party.name, collections.deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(party.name, turn)
            else:
                self._shares.give_back((party,))
                self._hand_out()
            raise

    def _hand_out(self) -> None:
        """Give what is free to those that wait."""
        while self._waiting and self._shares.free:
            name = min(self._waiting, key=lambda one: self._shares.held(fair_shares.Party(one)))
            if (first := self._waiting[name][0]).cancelled():  # its caller has not run since
                self._leave(name, first)
                continue
            if not self._shares.take((fair_shares.Party(name, self._alpha),)):
                return
            turns = self._waiting.pop(name)
            turns.popleft().set_result(None)
            if turns:
                self._waiting[name] = turns  # now the last

    def _leave(self, name: Hashable, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(name)
        if turns is not None and turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[name]
