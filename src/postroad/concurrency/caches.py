"""Bounded LRU caches, with values that expire or not, and work that concurrent callers share."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from postroad import errors
from postroad.model.delivery import fair_shares

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Values by key, at most `max_entries` of them."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        # Most recently used last.
        self._values: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """The value, marked as used."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> None:
        """Store a value as the most recently used."""
        self.discard(key)
        self.evict()
        self._values[key] = value

    def discard(self, key: K) -> None:
        """Remove a value, if there is one."""
        self._values.pop(key, None)

    def evict(self) -> V | None:
        """Evict and return the least recently used value, if the cache is full."""
        return self._values.pop(next(iter(self._values))) if len(self._values) >= self._max_entries else None


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

    def start(self, name: Hashable, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
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
        for flight in self._pending.values():
            flight.cancel()
        await self._wait()

    async def _wait(self) -> None:
        if self._pending:
            await asyncio.wait(self._pending.values())


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
        self._values: LruCache[str, Value] = LruCache(max_entries)
        self._flights = SingleFlight(max_entries, what="lookups")

    def get(self, name: str) -> Value | None:
        """The value if it is cached and valid."""
        value = self._values.get(name)
        return value if value is not None and self._clock() < value.valid_until else None

    def peek(self, name: str) -> Value | None:
        """The value if it is cached, valid or expired."""
        return self._values.get(name)

    def put(self, name: str, value: Value) -> None:
        self._values.put(name, value)

    async def get_or_fetch(self, name: str, find: Callable[[str], Awaitable[Value]]) -> Value:
        """The valid value, fetched now if necessary."""
        value = self.get(name)
        if value is not None:
            return value
        return await self._flights.join(name, functools.partial(self._fetch, name, find))

    async def close(self) -> None:
        await self._flights.cancel()

    async def _fetch(self, name: str, find: Callable[[str], Awaitable[Value]]) -> Value:
        value = await find(name)
        self.put(name, value)
        return value


class LazyValue(Generic[T]):
    """What `make` returns, which is called at most once unless it fails."""

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._made: list[T] = []
        self._turn = asyncio.Lock()

    async def get(self) -> T:
        if not self._made:
            async with self._turn:
                if not self._made:
                    self._made.append(await self._make())
        return self._made[0]
