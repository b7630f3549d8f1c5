"""A bounded LRU cache of values that expire. Concurrent lookups of one name share one fetch."""

import functools
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from postroad.concurrency import lru, single_flight


class Expirable(Protocol):
    """A value with an expiry time."""

    @property
    def valid_until(self) -> float:
        """Expiry on the clock of the cache."""


Value = TypeVar("Value", bound=Expirable)


class TtlCache(Generic[Value]):
    """Values by name, at most `max_entries` of them."""

    def __init__(self, *, max_entries: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._values: lru.LruCache[str, Value] = lru.LruCache(max_entries)
        self._flights = single_flight.SingleFlight(max_entries, what="lookups")

    def get(self, name: str) -> Value | None:
        """The value if it is cached and valid."""
        value = self._values.get(name)
        return value if value is not None and self._clock() < value.valid_until else None

    def peek(self, name: str) -> Value | None:
        """The value if it is cached, valid or expired."""
        return self._values.get(name)

    def put(self, name: str, value: Value) -> None:
        """Store a value."""
        self._values.put(name, value)

    async def get_or_fetch(self, name: str, find: Callable[[str], Awaitable[Value]]) -> Value:
        """The valid value, fetched now if necessary."""
        value = self.get(name)
        if value is not None:
            return value
        return await self._flights.join(name, functools.partial(self._fetch, name, find))

    async def close(self) -> None:
        """Cancel running fetches."""
        await self._flights.cancel()

    async def _fetch(self, name: str, find: Callable[[str], Awaitable[Value]]) -> Value:
        value = await find(name)
        self.put(name, value)
        return value
