"""Group commit: one mechanism for every hot write.

Concurrent calls of one operation are gathered while the commit before them is on its way to disk, and then go down as
one transaction. A flush to disk costs nearly the same for one row as for a hundred, so the busier the service, the
cheaper each call. An idle service commits a lone call at once. A busy one would commit whoever comes first alone, and
make all others wait for that: it lets half as many come together as took part last time, for no longer than that took.

A call returns after its commit. Refusals of single items are values and do not disturb their neighbours; a batch that
fails for any reason but the store itself is repeated item by item, so that one poisonous item hurts only itself. When
the store fails, everyone in the batch is told. Every caller gets an answer, even when the committing task is stopped.
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

# What a store raises when it is away, full or slow: the next item would fare no better.
TROUBLE = (errors.ServiceUnavailable, errors.TemporaryFailure)
# For items whose size is told: one commit stays short, for the first in it waits for the last.
MAX_BYTES = 32 * 1024 * 1024
# A commit that took longer waited for something that is no measure of how soon others come.
MAX_GATHERING_SECONDS = 0.02
# Large items fill the memory long before the line is long: at most this many full batches wait.
WAITING_BATCHES = 8


class Commits(Protocol[Item_contra, Result]):
    """Where calls of one operation are taken; each is answered when it is on disk."""

    async def submit(self, item: Item_contra, *, size: int = 0) -> Result:
        """Run the operation on the item; returns when its transaction is on disk."""

    def start(self, item: Item_contra, *, size: int = 0) -> asyncio.Future[Result]:
        """The same for whoever does not wait: the future has its result when the transaction is on disk."""

    async def recover(self, write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """If the store refused the last transaction, or is late: try a small one, which raises what it says now."""

    async def close(self) -> None:
        """Take no more, and wait until everything that was submitted is answered."""


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
        # There while calls are let come together; has its result when there are enough of them.
        self._gathering: asyncio.Future[None] | None = None
        self._enough = 0
        self._is_failing = False
        self._is_closing = False

    async def submit(self, item: Item, *, size: int = 0) -> Result:
        """Run the operation on the item; returns when its transaction is on disk."""
        return await self.start(item, size=size)

    def start(self, item: Item, *, size: int = 0) -> asyncio.Future[Result]:
        """The same for whoever does not wait: the future has its result when the transaction is on disk."""
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
        """If the store refused the last transaction, or is late: try a small one, which raises what it says now."""
        if self._is_failing:
            async with self._database.transaction() as tx:
                await write(tx)
            self._is_failing = False

    async def close(self) -> None:
        """Take no more, and wait until everything that was submitted is answered."""
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
        """Calls wait equally long, so they run out of time in order, and one alarm does for all."""
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
        # Let the calls that are ready in this turn of the loop join the first batch.
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
        """Let so many calls come together, for so long at the most; after a lone call nothing is waited for."""
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
        """Nobody may go on waiting for a runner that was stopped, or never got to start."""
        if runner.cancelled() or runner.exception() is not None:
            lost, self._committing = self._committing, []
            if runner is self._runner:
                lost += [self._take() for _ in range(len(self._waiting))]
            _refuse(lost, stopping())
        if not runner.cancelled() and isinstance(bug := runner.exception(), Exception):
            runner.get_loop().call_exception_handler({"message": "group commit has a bug", "exception": bug})

    def _next_batch(self) -> list[_Call[Item, Result]]:
        batch: list[_Call[Item, Result]] = []
        size = 0
        while self._waiting and len(batch) < self._max_items:
            if batch and size + self._waiting[0].size > self._max_bytes:
                break
            call = self._take()
            if not call.result.done():  # else the caller went away while it waited
                batch.append(call)
                size += call.size
        return batch

    async def _commit(self, batch: Sequence[_Call[Item, Result]]) -> None:
        if len(batch) < 2:  # noqa: PLR2004 - nothing to take apart
            await self._commit_each(batch)
            return
        try:
            results = await self._transact(batch)
        except TROUBLE as trouble:
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
            except TROUBLE as trouble:
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
                # Before the commit: an operation that answers for another number of items has done nobody knows what.
                if len(results) != len(batch):
                    msg = f"{len(batch)} items, but {len(results)} results"
                    raise RuntimeError(msg)
        except TROUBLE:
            self._is_failing = True
            raise
        self._is_failing = False
        return results


def _end_wait(wait: asyncio.Future[None]) -> None:
    if not wait.done():
        wait.set_result(None)


def stopping() -> errors.ServiceUnavailable:
    """The refusal of whatever a stop has overtaken."""
    return errors.ServiceUnavailable("the service is stopping; try again with the same key", retry_after=5)


def queue_full() -> errors.TemporaryFailure:
    """The refusal of one for whom there is no place to wait."""
    return errors.TemporaryFailure(
        "too many requests wait for the store; nothing was accepted, try again", retry_after=1
    )


def timed_out() -> errors.TemporaryFailure:
    """The refusal of one that has waited as long as it may."""
    msg = "the store did not take this request in time; nothing was accepted, try again with the same key"
    return errors.TemporaryFailure(msg, retry_after=1)


def _refuse(calls: Iterable[_Call[Item, Result]], trouble: errors.PostroadError) -> None:
    """Each caller raises an error of its own: a shared one would gather the tracebacks of them all."""
    for call in calls:
        own = type(trouble)(trouble.message, retry_after=trouble.retry_after)
        own.__cause__ = trouble.__cause__
        _answer(call, own)


def _answer(call: _Call[Item, Result], result: Result | Exception) -> None:
    if call.result.done():  # the caller went away while its transaction was on the way to disk
        return
    if isinstance(result, Exception):
        call.result.set_exception(result)
    else:
        call.result.set_result(result)
