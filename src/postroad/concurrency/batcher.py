"""Concurrent calls wait in a bounded queue, are processed in batches, and each gets its own result or error.

The number of waiting calls, their total size and their time in the queue are bounded: a call that exceeds a bound is
refused, and was not processed. A subclass takes calls from the queue and decides how many are processed together.
"""

import abc
import asyncio
import collections
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from postroad import errors

Item = TypeVar("Item")
Result = TypeVar("Result")


class Call(msgspec.Struct, Generic[Item, Result]):
    """An item whose caller waits for the result; `deadline` is until when, in the time of the event loop.

    `count` is how many ordinary items it is as much work as.
    """

    item: Item
    size: int
    count: int
    deadline: float
    result: asyncio.Future[Result]


class Batcher(abc.ABC, Generic[Item, Result]):
    """The queue of calls."""

    def __init__(self, *, max_waiting: int, max_waiting_bytes: int, wait_seconds: float) -> None:
        self._max_waiting = max_waiting
        self._max_waiting_bytes = max_waiting_bytes
        self._wait_seconds = wait_seconds
        self._waiting: collections.deque[Call[Item, Result]] = collections.deque()
        self._waiting_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        # Set when a call has waited too long; a subclass that reads it resets it.
        self._is_failing = False
        self._is_closing = False

    async def submit(self, item: Item, *, size: int = 0, count: int = 1) -> Result:
        """Process the item and return its result."""
        return await self.start(item, size=size, count=count)

    def start(self, item: Item, *, size: int = 0, count: int = 1) -> asyncio.Future[Result]:
        """The same without waiting: the future gets the result."""
        if self._is_closing:
            raise stopping()
        # A single item may have any size.
        is_large = bool(self._waiting) and self._waiting_bytes + size > self._max_waiting_bytes
        if is_large or self._count() >= self._max_waiting:
            msg = "too many requests are waiting for the database; nothing was accepted, try again"
            raise errors.TemporaryFailure(msg, retry_after=1)
        loop = asyncio.get_running_loop()
        call: Call[Item, Result] = Call(item, size, count, loop.time() + self._wait_seconds, loop.create_future())
        self._waiting.append(call)
        self._waiting_bytes += size
        if self._timer is None:
            self._timer = loop.call_at(call.deadline, self._refuse_expired)
        self._process()
        return call.result

    async def close(self) -> None:
        """Accept no more calls, and wait until every submitted one is answered."""
        self._is_closing = True
        await self._drain()
        if self._timer is not None:
            self._timer.cancel()

    @abc.abstractmethod
    def _process(self) -> None:
        """A call was added: take it now, or arrange for it."""

    @abc.abstractmethod
    async def _drain(self) -> None:
        """Wait until every submitted call is answered."""

    def _count(self) -> int:
        """The number of calls to compare with `max_waiting`."""
        return len(self._waiting)

    def _take(self, *, max_bytes: int | None) -> Call[Item, Result] | None:
        """The next call whose caller was not cancelled, unless it is larger than this."""
        while self._waiting and (max_bytes is None or self._waiting[0].size <= max_bytes):
            call = self._pop()
            if not call.result.done():
                return call
        return None

    def _take_all(self) -> list[Call[Item, Result]]:
        return [self._pop() for _ in range(len(self._waiting))]

    def _pop(self) -> Call[Item, Result]:
        call = self._waiting.popleft()
        self._waiting_bytes -= call.size
        return call

    def _refuse_expired(self) -> None:
        """All calls wait equally long, so they expire in order, and one timer is enough."""
        loop = asyncio.get_running_loop()
        while self._waiting and self._waiting[0].deadline <= loop.time():
            msg = "the database did not respond in time; nothing was accepted, try again with the same key"
            answer(self._pop().result, errors.TemporaryFailure(msg, retry_after=1))
            self._is_failing = True
        self._timer = loop.call_at(self._waiting[0].deadline, self._refuse_expired) if self._waiting else None


def answer(caller: asyncio.Future[Result], result: Result | Exception) -> None:
    """Give a caller its result or error, unless it was cancelled meanwhile."""
    if caller.done():
        return
    if isinstance(result, Exception):
        caller.set_exception(result)
    else:
        caller.set_result(result)


def refuse(calls: Iterable[Call[Item, Result]], trouble: errors.PostroadError) -> None:
    """Give each caller its own error: a shared one would collect the tracebacks of all of them."""
    for call in calls:
        own = type(trouble)(trouble.message, retry_after=trouble.retry_after)
        own.__cause__ = trouble.__cause__
        answer(call.result, own)


def stopping() -> errors.ServiceUnavailable:
    """The refusal of a call during shutdown."""
    return errors.ServiceUnavailable("the service is stopping; try again with the same key", retry_after=5)
