"""Concurrent calls wait in a bounded queue, are processed in batches, and each gets its own result or error.

The number of waiting calls, their total size and their time in the queue are bounded: a call that exceeds a bound is
refused, and was not processed. Each party, such as an account, has a queue of its own. Parties share the room by the
rule of `model/delivery/fair_shares.py`: one that is alone gets most of it, and none can take it all. A subclass takes
calls from the queues and decides how many are processed together.
"""

import abc
import asyncio
import collections
from collections.abc import Iterable
from typing import Generic, TypeVar

import msgspec

from postroad import errors
from postroad.model.delivery import fair_shares

Item = TypeVar("Item")
Result = TypeVar("Result")


class Call(msgspec.Struct, Generic[Item, Result]):
    """An item whose caller waits for the result; `deadline` is until when, in the time of the event loop.

    `count` is how many ordinary items it is as much work as.
    """

    party: str
    item: Item
    size: int
    count: int
    deadline: float
    result: asyncio.Future[Result]


class PartyQueue(Generic[Item, Result]):
    """The calls of one party, in order, at least one."""

    __slots__ = ("calls", "size")

    def __init__(self) -> None:
        self.calls: collections.deque[Call[Item, Result]] = collections.deque()
        self.size = 0


class Batcher(abc.ABC, Generic[Item, Result]):
    """The queue of calls."""

    def __init__(self, *, max_waiting: int, max_waiting_bytes: int, wait_seconds: float) -> None:
        self._max_waiting = max_waiting
        self._max_waiting_bytes = max_waiting_bytes
        self._wait_seconds = wait_seconds
        # In the order in which their parties came.
        self._queues: dict[str, PartyQueue[Item, Result]] = {}
        self._waiting = 0
        self._waiting_bytes = 0
        self._timer: asyncio.TimerHandle | None = None
        # Set when a call has waited too long; a subclass that reads it resets it.
        self._is_failing = False
        self._is_closing = False

    async def submit(self, item: Item, *, party: str = "", size: int = 0, count: int = 1) -> Result:
        return await self.start(item, party=party, size=size, count=count)

    def start(self, item: Item, *, party: str = "", size: int = 0, count: int = 1) -> asyncio.Future[Result]:
        """The same without waiting: the future gets the result."""
        if self._is_closing:
            raise stopping()
        queue = self._queues.get(party)
        self._check_room(queue, size)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait_seconds
        call: Call[Item, Result] = Call(party, item, size, count, deadline, loop.create_future())
        if queue is None:
            queue = self._queues[party] = PartyQueue()
        queue.calls.append(call)
        queue.size += size
        self._waiting += 1
        self._waiting_bytes += size
        if self._timer is None:
            self._timer = loop.call_at(deadline, self._refuse_expired)
        self._process(party)
        return call.result

    async def close(self) -> None:
        """Accept no more calls, and wait until every submitted one is answered."""
        self._is_closing = True
        await self._drain()
        if self._timer is not None:
            self._timer.cancel()

    @abc.abstractmethod
    def _process(self, party: str) -> None:
        """A call of the party was added: take it now, or arrange for it."""

    @abc.abstractmethod
    async def _drain(self) -> None:
        """Wait until every submitted call is answered."""

    def _count(self) -> int:
        """The number of calls to compare with `max_waiting`."""
        return self._waiting

    def _check_room(self, queue: PartyQueue[Item, Result] | None, size: int) -> None:
        """Refuse a call when the queue is full, or the party's share of it."""
        free, free_bytes = self._max_waiting - self._count(), self._max_waiting_bytes - self._waiting_bytes
        # A single item may have any size.
        has_room = free > 0 and (size <= free_bytes or not self._waiting)
        if has_room and queue is not None:
            has_room = len(queue.calls) < fair_shares.ALPHA * free and queue.size < fair_shares.ALPHA * free_bytes
        if not has_room:
            msg = "too many requests are waiting for the database; nothing was accepted, try again"
            raise errors.TemporaryFailure(msg, retry_after=1)

    def _take_all(self) -> list[Call[Item, Result]]:
        return [self._pop(queue) for queue in list(self._queues.values()) for _ in range(len(queue.calls))]

    def _pop(self, queue: PartyQueue[Item, Result]) -> Call[Item, Result]:
        call = queue.calls.popleft()
        queue.size -= call.size
        self._waiting -= 1
        self._waiting_bytes -= call.size
        if not queue.calls:
            del self._queues[call.party]
        return call

    def _refuse_expired(self) -> None:
        """All calls wait equally long, so those of a queue expire in order, and one timer is enough."""
        loop = asyncio.get_running_loop()
        for queue in list(self._queues.values()):
            while queue.calls and queue.calls[0].deadline <= loop.time():
                msg = "the database did not respond in time; nothing was accepted, try again with the same key"
                answer(self._pop(queue).result, errors.TemporaryFailure(msg, retry_after=1))
                self._is_failing = True
        first = min((queue.calls[0].deadline for queue in self._queues.values()), default=None)
        self._timer = None if first is None else loop.call_at(first, self._refuse_expired)


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
    return errors.ServiceUnavailable("the service is stopping; try again with the same key", retry_after=5)
