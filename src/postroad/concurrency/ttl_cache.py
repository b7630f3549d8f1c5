"""What was found out and holds for a time: a bounded memory that looks each thing up once, however many ask for it.

A look-up runs on its own, so one who stops waiting takes nothing from the others. When the memory is full, what was
put first goes first: nothing stays longer than it is valid, so that is nearly the least recently used.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class Expirable(Protocol):
    """A value that says how long it may be used."""

    @property
    def valid_until(self) -> float:
        """On the clock of the memory."""


Value = TypeVar("Value", bound=Expirable)


class TtlCache(Generic[Value]):
    """Values by name, `most` of them."""

    def __init__(self, *, max_entries: int, clock: Callable[[], float]) -> None:
        self._max_entries = max_entries
        self._clock = clock
        self._values: dict[str, Value] = {}
        self._flights: dict[str, asyncio.Task[Value]] = {}

    def get(self, name: str) -> Value | None:
        """The value when it is known and still valid."""
        value = self._values.get(name)
        return value if value is not None and self._clock() < value.valid_until else None

    def put(self, name: str, value: Value) -> None:
        """Remember a value."""
        self._values.pop(name, None)
        if len(self._values) >= self._max_entries:
            del self._values[next(iter(self._values))]
        self._values[name] = value

    async def get_or_fetch(self, name: str, find: Callable[[str], Awaitable[Value]]) -> Value:
        """The valid value, found now if need be."""
        value = self.get(name)
        if value is not None:
            return value
        return await asyncio.shield(self._flights.get(name) or self._start(name, find))

    async def close(self) -> None:
        """End the look-ups under way."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        if flights:
            await asyncio.wait(flights)

    def _start(self, name: str, find: Callable[[str], Awaitable[Value]]) -> asyncio.Task[Value]:
        flight = asyncio.get_running_loop().create_task(self._look_up(name, find))
        self._flights[name] = flight
        flight.add_done_callback(lambda done: self._finish(name, done))
        return flight

    async def _look_up(self, name: str, find: Callable[[str], Awaitable[Value]]) -> Value:
        value = await find(name)
        self.put(name, value)
        return value

    def _finish(self, name: str, flight: asyncio.Task[Value]) -> None:
        del self._flights[name]
        if not flight.cancelled():
            # Whoever waited got it; when they all have gone, nobody needs to hear of it.
            flight.exception()
