"""Slots for large request bodies, so that memory stays bounded however many arrive at once.

A body is held once while it arrives, which may take long, and about four times while it is parsed, checked and
assembled, which is short. Many may therefore arrive at once, and few are processed. A request without a slot waits with
its body unread, slowed by TCP flow control, and gets 503 after a timeout.

Slots are shared fairly by account, or by the client's network where there is none. A body must keep arriving at a
minimum speed while it has its slot; one that stalls gets 503, and the slot is free for the next.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final

from postroad import errors
from postroad.concurrency import fair_semaphore

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

# Smaller bodies are too numerous to queue and too small to matter.
LARGE_OCTETS: Final = 1024 * 1024
# Messages have at most 10 MiB: 80 MiB arriving, and as much being processed. Frontend processes share these slots; each
# has at least one for processing and three for receiving: an account that is alone gets two, so that a small body
# without a declared length does not wait for a large one.
MAX_RECEIVING: Final = 8
MAX_PROCESSING: Final = 2
MIN_RECEIVING: Final = 3
MIN_PROCESSING: Final = 1
# Clients often time out after 30 s; a response before that is better.
SLOT_TIMEOUT_SECONDS: Final = 10.0
# One account gets half of the slots for receiving, the next a quarter, and so on: a client that stalls holds its slot.
RECEIVING_ALPHA: Final = 1.0
# 128 kbit/s: a message of 2 MiB takes as long at that speed as the listener allows any body.
MIN_OCTETS: Final = 160 * 1024
MIN_OCTETS_SECONDS: Final = 10.0


class LargeBodySlots:
    """The slots of one process, its share of the service's total. `party` is whose body it is."""

    def __init__(self, *, frontends: int = 1) -> None:
        receiving = max(MIN_RECEIVING, MAX_RECEIVING // frontends)
        self._receiving = fair_semaphore.FairSemaphore(receiving, alpha=RECEIVING_ALPHA)
        self._processing = fair_semaphore.FairSemaphore(max(MIN_PROCESSING, MAX_PROCESSING // frontends))

    def receiving(self, party: str) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold a slot while a body is read and its request answered."""
        return _slot(self._receiving, party)

    def processing(self, party: str) -> contextlib.AbstractAsyncContextManager[None]:
        """Hold a slot while a body is processed."""
        return _slot(self._processing, party)


def at_minimum_speed(receive: Receive) -> Receive:
    """The same, for a body that has a slot: it raises TemporaryFailure when too little arrives in time."""
    clock = asyncio.get_running_loop().time
    received, deadline = 0, clock() + MIN_OCTETS_SECONDS

    async def receive_in_time() -> MutableMapping[str, Any]:
        nonlocal received, deadline
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            msg = "the body of the request did not arrive in time; retry with the same key"
            stalled = errors.TemporaryFailure(msg, retry_after=1)
            stalled.headers = (("Connection", "close"),)
            raise stalled from None
        received += len(message.get("body", b""))
        if received >= MIN_OCTETS:
            received, deadline = 0, clock() + MIN_OCTETS_SECONDS
        return message

    return receive_in_time


@contextlib.asynccontextmanager
async def _slot(slots: fair_semaphore.FairSemaphore, party: str) -> AsyncIterator[None]:
    async with contextlib.AsyncExitStack() as held:
        try:
            await held.enter_async_context(slots.hold(party, timeout=SLOT_TIMEOUT_SECONDS))
        except TimeoutError:
            msg = "too many large requests at the same time; nothing was accepted; retry with the same key"
            raise errors.TemporaryFailure(msg, retry_after=1) from None
        yield
