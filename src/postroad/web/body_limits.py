"""Places for large bodies, so that memory stays bounded however many of them come at the same time.

A body is held once while it arrives, which may take long, and some four times while it is parsed, checked and made into
what is stored, which is short work. So many may arrive at once and few are worked on. Who finds no place waits: its
body stays unread with its caller, who is slowed down by TCP. After a while it is told to try again.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from postroad import errors

# Smaller ones are too many to queue for, and too small to matter.
LARGE_OCTETS: Final = 1024 * 1024
# Messages have 10 MiB at the most: 80 MiB that arrive, and as much for those that are worked on. Doors in
# several processes share these places; the least is one to work on, and meanwhile one that arrives.
MAX_RECEIVING: Final = 8
MAX_PROCESSING: Final = 2
MIN_RECEIVING: Final = 2
MIN_PROCESSING: Final = 1
# Callers often give up after 30 s; an answer that they see is better.
SLOT_TIMEOUT_SECONDS: Final = 10.0


class LargeBodySlots:
    """The places of one door, of so many that the service has."""

    def __init__(self, *, doors: int = 1) -> None:
        self._receiving = asyncio.Semaphore(max(MIN_RECEIVING, MAX_RECEIVING // doors))
        self._processing = asyncio.Semaphore(max(MIN_PROCESSING, MAX_PROCESSING // doors))

    def receiving(self) -> contextlib.AbstractAsyncContextManager[None]:
        """A place for a body that is to be read, until its request is answered."""
        return _slot(self._receiving)

    def processing(self) -> contextlib.AbstractAsyncContextManager[None]:
        """A place for one that has arrived, while it is worked on."""
        return _slot(self._processing)


@contextlib.asynccontextmanager
async def _slot(slots: asyncio.Semaphore) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(SLOT_TIMEOUT_SECONDS):
            await slots.acquire()
    except TimeoutError:
        msg = "too many large requests at the same time; nothing was accepted, try again"
        raise errors.TemporaryFailure(msg, retry_after=1) from None
    try:
        yield
    finally:
        slots.release()
