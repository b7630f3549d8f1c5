"""The limit on open connections over all provider queues; unproven destinations share half of them.

A dead destination holds its connections until they time out. However many there are, the other half of the connections
is left for destinations that answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class Permits:
    """The right to hold a connection."""

    def __init__(self, max_connections: int) -> None:
        self._all = asyncio.Semaphore(max_connections)
        self._unproven = asyncio.Semaphore(max(1, max_connections // 2))

    @contextlib.asynccontextmanager
    async def acquire(self, *, proven: bool) -> AsyncIterator[None]:
        """Wait for a permit and hold it."""
        if proven:
            async with self._all:
                yield
        else:
            async with self._unproven, self._all:
                yield
