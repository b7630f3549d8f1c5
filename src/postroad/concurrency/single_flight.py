"""Work that many ask for at one moment is done once: whoever comes later waits for the same result.

A flight belongs to nobody: when all who wait for it give up, it still ends, and what it found is not lost.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

from postroad import errors

T = TypeVar("T")


class SingleFlight:
    """What is under way, by name, at most so much."""

    def __init__(self, max_pending: int, *, what: str) -> None:
        self._max_pending = max_pending
        self._what = what
        self._pending: dict[Hashable, asyncio.Task[Any]] = {}
        self._is_closed = False

    async def join(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work of this name, which begins now unless it is under way already."""
        flight: asyncio.Task[T] = self._pending.get(name) or self._begin(name, work)
        return await asyncio.shield(flight)

    def _begin(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        if self._is_closed or len(self._pending) >= self._max_pending:
            raise errors.ServiceUnavailable(f"too many {self._what} are waiting; try again", retry_after=1)
        flight = asyncio.get_running_loop().create_task(work())
        self._pending[name] = flight
        flight.add_done_callback(functools.partial(self._end, name))
        return flight

    def _end(self, name: Hashable, flight: asyncio.Task[Any]) -> None:
        del self._pending[name]
        if not flight.cancelled():
            flight.exception()  # whoever waited got it; when they all have gone, nobody needs to hear of it

    async def close(self) -> None:
        """Begin nothing any more, and wait for what is under way."""
        self._is_closed = True
        if self._pending:
            await asyncio.wait(self._pending.values())
