"""A semaphore that is shared fairly: parties that wait take turns, and none can hold all of many units.

`model/fair_shares.py` decides who may have another unit, and who is next.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable

from postroad.model import fair_shares

Parties = tuple[fair_shares.Party, ...]


class FairSemaphore:
    """Units of a resource, held by parties such as accounts."""

    def __init__(self, units: int, *, alpha: float = fair_shares.ALPHA, rank: fair_shares.Rank | None = None) -> None:
        self._shares = fair_shares.FairShares(units)
        self._alpha = alpha
        self._waiting: fair_shares.FairQueue[asyncio.Future[None]] = fair_shares.FairQueue(self._shares, rank=rank)

    @property
    def is_contended(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    @contextlib.asynccontextmanager
    async def hold(self, name: Hashable, *, timeout: float | None = None) -> AsyncIterator[None]:  # noqa: ASYNC109 - only of the wait
        """Wait for a unit that counts for one party, and hold it. Raises TimeoutError after `timeout` seconds."""
        parties = (fair_shares.Party(name, self._alpha),)
        if not self.try_acquire(parties):
            async with asyncio.timeout(timeout):
                await self.wait(parties)
        try:
            yield
        finally:
            self.release(parties)

    def try_acquire(self, parties: Parties) -> bool:
        """Take a unit if the parties may have it now."""
        return not self._waiting.is_waiting(parties) and self._shares.take(parties)

    async def wait(self, parties: Parties, *, is_first: bool = False) -> None:
        """Wait for a unit and take it; whoever is first comes before all that wait for the same parties."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(parties, turn, is_first=is_first)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting.discard(parties, turn)
            else:
                self.release(parties)
            raise

    def release(self, parties: Parties) -> None:
        """Return a unit."""
        self._shares.give_back(parties)
        self._hand_out()

    def exchange(self, held: Parties, wanted: Parties) -> bool:
        """Let a unit count for other parties from now on.

        False when they may not have it, or when it is the turn of somebody who holds less; then nothing changes.
        """
        self._shares.give_back(held)
        first = self._waiting.first()
        is_outranked = first is not None and self._shares.held(first[0]) < self._shares.held(wanted[0])
        if is_outranked or not self._shares.take(wanted):
            self._shares.add(held)
            return False
        if held != wanted:
            self._hand_out()
        return True

    def is_wanted(self, held: Parties) -> bool:
        """Whether somebody who waits could have a unit if it were returned."""
        if not self._waiting:
            return False
        self._shares.give_back(held)
        first = self._waiting.first()
        self._shares.add(held)
        return first is not None

    def would_help(self, held: Parties, wanted: Parties) -> bool:
        """Whether these parties could have a unit if it were returned."""
        self._shares.give_back(held)
        is_free = all(map(self._shares.has_share, wanted))
        self._shares.add(held)
        return is_free

    def count(self, party: fair_shares.Party, change: int) -> None:
        """Let a unit count for another party as well, or no longer."""
        self._shares.count(party, change)

    def _hand_out(self) -> None:
        """Give what is free to those that wait."""
        while (parties := self._waiting.first()) is not None:
            turn = self._waiting.pop(parties)
            if turn.cancelled():  # a moment ago: its task has not seen it yet
                self._shares.give_back(parties)
            else:
                turn.set_result(None)
