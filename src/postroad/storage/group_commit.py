"""Group commit: one mechanism for every hot write.

Concurrent calls of one operation are gathered while the previous commit is written to disk, and then committed as one
transaction. A flush to disk costs nearly the same for one row as for a hundred, so calls get cheaper under load. An
idle service commits a single call at once. A busy one would commit the first call alone and make the others wait, so
it waits for half the previous batch, at most as long as the previous commit took.

A call returns after its commit. Refusals of single items are values and do not affect the rest of the batch. A batch
that fails for another reason than the store is repeated item by item, so that one bad item fails alone. When the store
fails, every caller in the batch gets the error. Every caller gets an answer, even when the committing task is stopped.
"""

import asyncio
import collections
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from postroad import errors
from postroad.storage import store

Item = TypeVar("Item")
Result = TypeVar("Result")
Item_contra = TypeVar("Item_contra", contravariant=True)
Operation = Callable[[store.Transaction, Sequence[Item]], Awaitable[Sequence[Result | errors.PostroadError]]]

# Of the sizes that callers pass: one commit stays short, because the first item in it waits for the last.
MAX_BYTES = 32 * 1024 * 1024
# A commit that took longer says nothing about how soon the next calls arrive.
MAX_GATHERING_SECONDS = 0.02
# Large items fill memory before `max_waiting` is reached: at most this many full batches wait.
WAITING_BATCHES = 8


class Commits(Protocol[Item_contra, Result]):
    """Accepts calls of one operation; each returns when it is on disk."""

    async def submit(self, item: Item_contra, *, size: int = 0) -> Result:
        """Run the operation on the item; returns when its transaction is on disk."""

    def start(self, item: Item_contra, *, size: int = 0) -> asyncio.Future[Result]:
        """The same without waiting: the future has its result when the transaction is on disk."""

    async def recover(self, write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """If the last transaction failed or timed out: try a small one, which raises the store's current error."""

    async def close(self) -> None:
        """Accept no more calls, and wait until every submitted one is answered."""


@dataclass(slots=True)
class _Call(Generic[Item, Result]):
    """An item that waits for its commit."""

    item: Item
    size: int
    deadline: float
    result: asyncio.Future[Result]


class GroupCommit(Generic[Item, Result]):
    """Gathers calls of one operation into transactions."""

    def __init__(
        self,
        database: store.Store,
        operation: Operation[Item, Result],
        *,
        max_items: int,
        max_bytes: int = MAX_BYTES,
        max_waiting: int,
        wait_seconds: float,
    ) -> None:
        self._database = database
        self._operation = operation
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._max_waiting = max_waiting
        self._wait_seconds = wait_seconds
        self._waiting: collections.deque[_Call[Item, Result]] = collections.deque()
        self._waiting_bytes = 0
        self._committing: list[_Call[Item, Result]] = []
        self._runner: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        # Set while calls are gathered; has its result when there are enough of them.
        self._gathering: asyncio.Future[None] | None = None
        self._enough = 0
        self._is_failing = False
        self._is_closing = False

    async def submit(self, item: Item, *, size: int = 0) -> Result:
        """Run the operation on the item; returns when its transaction is on disk."""
        return await self.start(item, size=size)

    def start(self, item: Item, *, size: int = 0) -> asyncio.Future[Result]:
        """The same without waiting: the future has its result when the transaction is on disk."""
        self._refuse_when_closing_or_full(size)
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Result] = loop.create_future()
        call = _Call(item, size, loop.time() + self._wait_seconds, result)
        self._waiting.append(call)
        self._waiting_bytes += size
        if self._gathering is not None and len(self._waiting) >= self._enough:
            _end_wait(self._gathering)
        if self._timer is None:
            self._timer = loop.call_at(call.deadline, self._refuse_expired)
        if self._runner is None or self._runner.done():
            self._runner = loop.create_task(self._run())
            self._runner.add_done_callback(self._end)
        return result

    async def recover(self, write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """If the last transaction failed or timed out: try a small one, which raises the store's current error."""
        if self._is_failing:
            async with self._database.transaction() as tx:
                await write(tx)
            self._is_failing = False

    async def close(self) -> None:
        """Accept no more calls, and wait until every submitted one is answered."""
        self._is_closing = True
        if self._gathering is not None:
            _end_wait(self._gathering)
        while self._runner is not None and not self._runner.done():
            await asyncio.wait([self._runner])
        if self._timer is not None:
            self._timer.cancel()

    def _refuse_when_closing_or_full(self, size: int) -> None:
        if self._is_closing:
            raise stopping()
        is_long = len(self._waiting) >= self._max_waiting
        is_large = bool(self._waiting) and self._waiting_bytes + size > self._max_bytes * WAITING_BATCHES
        if is_long or is_large:
            raise queue_full()

    def _refuse_expired(self) -> None:
        """All calls wait equally long, so they expire in order, and one timer is enough."""
        loop = asyncio.get_running_loop()
        while self._waiting and self._waiting[0].deadline <= loop.time():
            _answer(self._take(), timed_out())
            self._is_failing = True
        first = self._waiting[0] if self._waiting else None
        self._timer = loop.call_at(first.deadline, self._refuse_expired) if first else None

    def _take(self) -> _Call[Item, Result]:
        call = self._waiting.popleft()
        self._waiting_bytes -= call.size
        return call

    async def _run(self) -> None:
        # Let the calls of this turn of the event loop join the first batch.
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        while self._waiting:
            began = loop.time()
            self._committing = self._next_batch()
            await self._commit(self._committing)
            took_part = len(self._committing) + len(self._waiting)
            self._committing = []
            await self._gather(took_part // 2, seconds=min(loop.time() - began, MAX_GATHERING_SECONDS))

    async def _gather(self, enough: int, *, seconds: float) -> None:
        """Wait for `enough` calls, at most `seconds`; after a single call there is no wait."""
        if len(self._waiting) >= enough or self._is_closing:
            return
        loop = asyncio.get_running_loop()
        self._enough, self._gathering = enough, loop.create_future()
        alarm = loop.call_later(seconds, _end_wait, self._gathering)
        try:
            await self._gathering
        finally:
            self._gathering = None
            alarm.cancel()

    def _end(self, runner: asyncio.Task[None]) -> None:
        """Answer everyone who waits for a runner that was stopped, or never started."""
        if runner.cancelled() or runner.exception() is not None:
            lost, self._committing = self._committing, []
            if runner is self._runner:
                lost += [self._take() for _ in range(len(self._waiting))]
            _refuse(lost, stopping())
        if not runner.cancelled() and isinstance(bug := runner.exception(), Exception):
            runner.get_loop().call_exception_handler({"message": "group commit failed unexpectedly", "exception": bug})

    def _next_batch(self) -> list[_Call[Item, Result]]:
        batch: list[_Call[Item, Result]] = []
        size = 0
        while self._waiting and len(batch) < self._max_items:
            if batch and size + self._waiting[0].size > self._max_bytes:
                break
            call = self._take()
            if not call.result.done():  # else the caller was cancelled while it waited
                batch.append(call)
                size += call.size
        return batch

    async def _commit(self, batch: Sequence[_Call[Item, Result]]) -> None:
        if len(batch) < 2:  # noqa: PLR2004 - nothing to split
            await self._commit_each(batch)
            return
        try:
            results = await self._transact(batch)
        except store.UNAVAILABLE as trouble:
            _refuse(batch, trouble)
        except Exception:  # noqa: BLE001 - the item that caused it will get it
            await self._commit_each(batch)
        else:
            for call, result in zip(batch, results, strict=True):
                _answer(call, result)

    async def _commit_each(self, batch: Sequence[_Call[Item, Result]]) -> None:
        for position, call in enumerate(batch):
            try:
                (result,) = await self._transact([call])
            except store.UNAVAILABLE as trouble:
                _refuse(batch[position:], trouble)
                return
            except Exception as failure:  # noqa: BLE001 - the caller gets it; none is swallowed
                _answer(call, failure)
            else:
                _answer(call, result)

    async def _transact(self, batch: Sequence[_Call[Item, Result]]) -> Sequence[Result | errors.PostroadError]:
        try:
            async with self._database.transaction() as tx:
                results = await self._operation(tx, [call.item for call in batch])
                # Before the commit: an operation that returns another number of results has a bug.
                if len(results) != len(batch):
                    msg = f"{len(batch)} items, but {len(results)} results"
                    raise RuntimeError(msg)
        except store.UNAVAILABLE:
            self._is_failing = True
            raise
        self._is_failing = False
        return results


def _end_wait(wait: asyncio.Future[None]) -> None:
    if not wait.done():
        wait.set_result(None)


def stopping() -> errors.ServiceUnavailable:
    """The refusal of a call during shutdown."""
    return errors.ServiceUnavailable("the service is stopping; try again with the same key", retry_after=5)


def queue_full() -> errors.TemporaryFailure:
    """The refusal of a call when too many wait."""
    return errors.TemporaryFailure(
        "too many requests are waiting for the database; nothing was accepted, try again", retry_after=1
    )


def timed_out() -> errors.TemporaryFailure:
    """The refusal of a call that has waited as long as it may."""
    msg = "the database did not respond in time; nothing was accepted, try again with the same key"
    return errors.TemporaryFailure(msg, retry_after=1)


def _refuse(calls: Iterable[_Call[Item, Result]], trouble: errors.PostroadError) -> None:
    """Give each caller its own error: a shared one would collect the tracebacks of all of them."""
    for call in calls:
        own = type(trouble)(trouble.message, retry_after=trouble.retry_after)
        own.__cause__ = trouble.__cause__
        _answer(call, own)


def _answer(call: _Call[Item, Result], result: Result | Exception) -> None:
    if call.result.done():  # the caller was cancelled during the commit
        return
    if isinstance(result, Exception):
        call.result.set_exception(result)
    else:
        call.result.set_result(result)
