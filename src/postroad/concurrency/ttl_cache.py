"""A bounded cache of values that expire. Concurrent look-ups of one name share one fetch.

A fetch runs in its own task, so a cancelled waiter does not affect the others. When the cache is full, the oldest entry
is evicted: entries live no longer than their validity, so this is close to LRU.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class Expirable(Protocol):
    """A value with an expiry time."""

    @property
    def valid_until(self) -> float:
        """Expiry on the clock of the cache."""


Value = TypeVar("Value", bound=Expirable)


class TtlCache(Generic[Value]):
    """Values by name, at most `most` of them."""

    def __init__(self, *, max_entries: int, clock: Callable[[], float]) -> None:
        self._max_entries = max_entries
        self._clock = clock
        self._values: dict[str, Value] = {}
        self._flights: dict[str, asyncio.Task[Value]] = {}

    def get(self, name: str) -> Value | None:
        """The value if it is cached and valid."""
        value = self._values.get(name)
        return value if value is not None and self._clock() < value.valid_until else None

    def put(self, name: str, value: Value) -> None:
        """Store a value."""
        self._values.pop(name, None)
        if len(self._values) >= self._max_entries:
            del self._values[next(iter(self._values))]
        self._values[name] = value

    async def get_or_fetch(self, name: str, find: Callable[[str], Awaitable[Value]]) -> Value:
        """The valid value, fetched now if necessary."""
        value = self.get(name)
        if value is not None:
            return value
        return await asyncio.shield(self._flights.get(name) or self._start(name, find))

    async def close(self) -> None:
        """Cancel running fetches."""
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
            # The waiters got the error; if all have gone, nobody needs it.
            flight.exception()
