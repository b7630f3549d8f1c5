"""A value that is made when it is first asked for, and once: those who ask meanwhile wait for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LazyValue(Generic[T]):
    """What `make` returns, which is called at most once unless it fails."""

    def __init__(self, make: Callable[[], Awaitable[T]]) -> None:
        self._make = make
        self._made: list[T] = []
        self._turn = asyncio.Lock()

    async def get(self) -> T:
        """The value."""
        if not self._made:
            async with self._turn:
                if not self._made:
                    self._made.append(await self._make())
        return self._made[0]
