"""Slots for large request bodies, so that memory stays bounded however many arrive at once.

A body is held once while it arrives, which may take long, and about four times while it is parsed, checked and
assembled, which is short. Many may therefore arrive at once, and few are processed. A request without a slot waits with
its body unread, slowed by TCP flow control, and gets 503 after a timeout.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from postroad import errors

# Smaller bodies are too numerous to queue and too small to matter.
LARGE_OCTETS: Final = 1024 * 1024
# Messages have at most 10 MiB: 80 MiB arriving, and as much being processed. Frontend processes share these slots; each
# has at least one for processing and one for receiving.
MAX_RECEIVING: Final = 8
MAX_PROCESSING: Final = 2
MIN_RECEIVING: Final = 2
MIN_PROCESSING: Final = 1
# Clients often time out after 30 s; a response before that is better.
SLOT_TIMEOUT_SECONDS: Final = 10.0


class LargeBodySlots:
    """The slots of one process, its share of the service's total."""

    def __init__(self, *, frontends: int = 1) -> None:
        self._receiving = asyncio.Semaphore(max(MIN_RECEIVING, MAX_RECEIVING // frontends))
        self._processing = asyncio.Semaphore(max(MIN_PROCESSING, MAX_PROCESSING // frontends))

    def receiving(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold a slot while a body is read and its request answered."""
        return _slot(self._receiving)

    def processing(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold a slot while a body is processed."""
        return _slot(self._processing)


@contextlib.asynccontextmanager
async def _slot(slots: asyncio.Semaphore) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(SLOT_TIMEOUT_SECONDS):
            await slots.acquire()
    except TimeoutError:
        msg = "too many large requests at the same time; nothing was accepted; retry with the same key"
        raise errors.TemporaryFailure(msg, retry_after=1) from None
    try:
        yield
    finally:
        slots.release()
