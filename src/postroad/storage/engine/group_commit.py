"""Group commit: one mechanism for every hot write.

Concurrent calls of one operation are gathered while the previous commit is written to disk, and then committed as one
transaction. A flush to disk costs nearly the same for one row as for a hundred, so calls get cheaper under load. An
idle service commits a single call at once. A busy one would commit the first call alone and make the others wait, so
it waits for half as many as took part in the previous one or waited after it, at most as long as that took, and 20 ms.

A commit is bounded in items and bytes, and parties take turns by work: the party that has been given the least work is
next (start-time fair queuing; Goyal, Vin and Cheng, 1996). So a call waits for the commit under way and for its own,
whatever others have waiting, and a party that is alone gets everything.

A call returns after its commit. Refusals of single items are values and do not affect the rest of the batch. A batch
that fails for another reason than the store is repeated item by item, so that one bad item fails alone. When the store
fails, every caller in the batch gets the error. Every caller gets an answer, even when the committing task is stopped.
"""

import abc
import asyncio
import collections
import functools
import heapq
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

import msgspec

from postroad import errors
from postroad.model.delivery import fair_shares
from postroad.storage.engine import store

Item = TypeVar("Item")
Result = TypeVar("Result")
Operation = Callable[[store.Transaction, Sequence[Item]], Awaitable[Sequence[Result | errors.PostroadError]]]

# Of the sizes that callers pass: one commit stays short, because the first item in it waits for the last, and everybody
# else for the commit. It is a good commit already, of 40 messages of 100 KB. A larger item has a commit of its own.
MAX_BYTES = 4 * 1024 * 1024
# The work of an item, beside its bytes: as long as it takes to store this many.
ITEM_WORK = 4096
# A commit that took longer says nothing about how soon the next calls arrive.
MAX_GATHERING_SECONDS = 0.02
# Large items fill memory before `max_waiting` is reached: at most this many full batches wait.
WAITING_BATCHES = 64


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


class Commits(abc.ABC, Generic[Item, Result]):
    """Accepts calls of one operation; each returns when it is on disk, with its own result or error.

    The number of waiting calls, their total size and their time in the queue are bounded: a call that exceeds a bound
    is refused, and was not processed. Each party, such as an account, has a queue of its own. Parties share the room by
    the rule of `model/delivery/fair_shares.py`: one that is alone gets most of it, and none can take it all.
    """

    def __init__(self, *, max_waiting: int, max_waiting_bytes: int, wait_seconds: float) -> None:
        self._max_waiting = max_waiting
        self._max_waiting_bytes = max_waiting_bytes
        self._wait_seconds = wait_seconds
        # In the order in which their parties came.
        self._queues: dict[str, PartyQueue[Item, Result]] = {}
        self._waiting = 0
        self._waiting_bytes = 0
        # Calls that another process was given and has not answered: they take up room as well.
        self._in_flight: dict[int, Call[Item, Result]] = {}
        self._timer: asyncio.TimerHandle | None = None
        # Set when a call has waited too long; a subclass that reads it resets it.
        self._is_failing = False
        self._is_closing = False

    async def submit(self, item: Item, *, party: str = "", size: int = 0, count: int = 1) -> Result:
        """Process the item and return its result."""
        return await self.start(item, party=party, size=size, count=count)

    def start(self, item: Item, *, party: str = "", size: int = 0, count: int = 1) -> asyncio.Future[Result]:
        """The same without waiting: the future gets the result."""
        if self._is_closing:
            raise stopping()
        queue = self._queues.get(party)
        free = self._max_waiting - self._waiting - len(self._in_flight)
        free_bytes = self._max_waiting_bytes - self._waiting_bytes
        # A single item may have any size.
        has_room = free > 0 and (size <= free_bytes or not self._waiting)
        if has_room and queue is not None:
            has_room = len(queue.calls) < fair_shares.ALPHA * free and queue.size < fair_shares.ALPHA * free_bytes
        if not has_room:
            msg = "too many requests are waiting for the database; nothing was accepted, try again"
            raise errors.TemporaryFailure(msg, retry_after=1)
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
    async def recover(self, write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        """If the last transaction failed or timed out: try a small one, which raises the store's current error."""

    @abc.abstractmethod
    def _process(self, party: str) -> None:
        """A call of the party was added: take it now, or arrange for it."""

    @abc.abstractmethod
    async def _drain(self) -> None: ...

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


class GroupCommit(Commits[Item, Result]):
    def __init__(
        self,
        database: store.Store,
        operation: Operation[Item, Result],
        *,
        max_items: int,
        max_bytes: int = MAX_BYTES,
        max_waiting: int,
        wait_seconds: float,
        answered: Callable[[], None] = lambda: None,
    ) -> None:
        """`answered` is called after each batch: what it wakes runs after the callers, which have their answers."""
        super().__init__(
            max_waiting=max_waiting, max_waiting_bytes=max_bytes * WAITING_BATCHES, wait_seconds=wait_seconds
        )
        self._database = database
        self._operation = operation
        self._answered = answered
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._committing: list[Call[Item, Result]] = []
        # The work that each party has had, and the least that anybody who waits has had: there a new one begins.
        self._work: dict[str, int] = {}
        self._least_work = 0
        # How many parties it was kept of when the others were last forgotten.
        self._remembered = 0
        self._runner: asyncio.Task[None] | None = None
        # Set while calls are gathered; has its result when there are enough of them.
        self._gathering: asyncio.Future[None] | None = None
        self._enough = 0

    async def recover(self, write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        if self._is_failing:
            async with self._database.transaction() as tx:
                await write(tx)
            self._is_failing = False

    def _process(self, party: str) -> None:  # noqa: ARG002 - their turns are decided when a commit begins
        if self._gathering is not None and self._waiting >= self._enough:
            answer(self._gathering, None)
        if self._runner is None or self._runner.done():
            self._runner = asyncio.get_running_loop().create_task(self._run())
            self._runner.add_done_callback(self._end)

    async def _drain(self) -> None:
        if self._gathering is not None:
            answer(self._gathering, None)
        while self._runner is not None and not self._runner.done():
            await asyncio.wait([self._runner])

    async def _run(self) -> None:
        # Let the calls of this turn of the event loop join the first batch, and what arrives in the next one.
        await asyncio.sleep(0)
        loop = asyncio.get_running_loop()
        while self._waiting:
            began = loop.time()
            self._committing = self._next_batch()
            await self._commit(self._committing)
            # In the next turn of the event loop, at whose end the answers leave; then whoever waits for this goes on.
            loop.call_soon(self._answered)
            took_part = len(self._committing) + self._waiting
            self._committing = []
            await self._gather(took_part // 2, seconds=min(loop.time() - began, MAX_GATHERING_SECONDS))
        self._work.clear()
        self._least_work = self._remembered = 0

    async def _gather(self, enough: int, *, seconds: float) -> None:
        """Wait for `enough` calls, at most `seconds`; after a single call there is no wait."""
        if self._waiting >= enough or self._is_closing:
            return
        loop = asyncio.get_running_loop()
        self._enough, self._gathering = enough, loop.create_future()
        alarm = loop.call_later(seconds, answer, self._gathering, None)
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
                lost += self._take_all()
            refuse(lost, stopping())
        if not runner.cancelled() and isinstance(bug := runner.exception(), Exception):
            runner.get_loop().call_exception_handler({"message": "group commit failed unexpectedly", "exception": bug})

    def _next_batch(self) -> list[Call[Item, Result]]:
        batch: list[Call[Item, Result]] = []
        room, items = self._max_bytes, self._max_items
        least = self._least_work
        turns = [(max(self._work.get(party, 0), least), place, party) for place, party in enumerate(self._queues)]
        heapq.heapify(turns)
        while turns:
            work, place, party = turns[0]
            queue = self._queues[party]
            call = queue.calls[0]
            # Whoever does not fit in is first in the next commit. Others that would fit in could delay it without end.
            if batch and (call.size > room or call.count > items):
                break
            self._pop(queue)
            if not call.result.done():  # else its caller was cancelled
                batch.append(call)
                room -= call.size
                items -= call.count
                self._least_work = work
                work += call.size + ITEM_WORK * call.count
                self._work[party] = work
            if queue.calls:
                heapq.heapreplace(turns, (work, place, party))
            else:
                heapq.heappop(turns)
        # Not each time: a commit does not look at thousands of parties that were in those before it.
        if len(self._work) > 2 * max(self._remembered, len(self._queues)):
            self._forget_work()
        return batch

    def _forget_work(self) -> None:
        """Forget the work of those that do not wait and would begin where the others are."""
        least = self._least_work
        self._work = {party: work for party, work in self._work.items() if work > least or party in self._queues}
        self._remembered = len(self._work)

    async def _commit(self, batch: Sequence[Call[Item, Result]]) -> None:
        if len(batch) < 2:  # noqa: PLR2004 - nothing to split
            await self._commit_each(batch)
            return
        try:
            results = await self._transact(batch)
        except store.UNAVAILABLE as trouble:
            refuse(batch, trouble)
        except Exception:  # noqa: BLE001 - the item that caused it will get it
            await self._commit_each(batch)
        else:
            for call, result in zip(batch, results, strict=True):
                answer(call.result, result)

    async def _commit_each(self, batch: Sequence[Call[Item, Result]]) -> None:
        for position, call in enumerate(batch):
            try:
                (result,) = await self._transact([call])
            except store.UNAVAILABLE as trouble:
                refuse(batch[position:], trouble)
                return
            except Exception as failure:  # noqa: BLE001 - the caller gets it; none is swallowed
                answer(call.result, failure)
            else:
                answer(call.result, result)

    async def _transact(self, batch: Sequence[Call[Item, Result]]) -> Sequence[Result | errors.PostroadError]:
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


# Retries a group commit until the item is recorded, for results that nobody can submit again.
#
# While the store is unavailable an item is kept and submitted again, with growing delays. Any other outcome is passed
# to the owner, once. The owner bounds how many items may wait. `close` waits for a limited time and then drops the
# rest.

FIRST_WAIT_SECONDS: Final = 0.1
MAX_WAIT_SECONDS: Final = 5.0
# An outage fails hundreds of items again and again: the owner is notified once per interval, with their number.
REPORT_INTERVAL_SECONDS: Final = 1.0


class _PendingItem(msgspec.Struct, Generic[Item], eq=False):
    """An item that is not recorded yet; `party` and `count` as in a call, `wait` is the delay before its next retry."""

    item: Item
    party: str
    count: int
    wait: float


class RetryingCommits(Generic[Item, Result]):
    """Submits items to a group commit until they are recorded.

    `settled` gets an item and its result, or the exception that prevented it, while the item still counts as waiting.
    `refused` gets the number of waiting items and the error of the store.
    """

    def __init__(
        self,
        commits: GroupCommit[Item, Result],
        *,
        settled: Callable[[Item, Result | Exception], None],
        refused: Callable[[int, errors.PostroadError], None],
    ) -> None:
        self._commits = commits
        self._settled = settled
        self._refused = refused
        self._waiting = 0
        # For each item that was refused at least once: its next retry, or the last one.
        self._retries: dict[_PendingItem[Item], asyncio.TimerHandle] = {}
        self._report_at = float("-inf")
        self._has_given_up = False
        self._all_settled = asyncio.Event()
        self._all_settled.set()

    @property
    def waiting(self) -> int:
        """How many items are not settled yet."""
        return self._waiting

    @property
    def is_retrying(self) -> bool:
        """Whether an item that the store refused is waiting."""
        return bool(self._retries)

    def submit(self, item: Item, *, party: str = "", count: int = 1) -> None:
        """Record an item that is as much work as `count` ordinary ones; it is submitted when this returns."""
        self._waiting += 1
        self._all_settled.clear()
        self._attempt(_PendingItem(item, party, count, FIRST_WAIT_SECONDS))

    async def close(self, *, seconds: float) -> int:
        """Wait until everything is settled, at most this long, then stop; returns how many items are left."""
        try:
            async with asyncio.timeout(seconds):
                await self._all_settled.wait()
        except TimeoutError:
            self._has_given_up = True
            self._all_settled.set()  # ends the wait of others
            for timer in self._retries.values():
                timer.cancel()
        return self._waiting

    def _attempt(self, pending: _PendingItem[Item]) -> None:
        try:
            recorded = self._commits.start(pending.item, party=pending.party, count=pending.count)
        except store.UNAVAILABLE as trouble:
            self._retry_later(pending, trouble)
        else:
            recorded.add_done_callback(functools.partial(self._on_done, pending))

    def _on_done(self, pending: _PendingItem[Item], recorded: asyncio.Future[Result]) -> None:
        outcome: Result | Exception
        try:
            outcome = recorded.result()
        except store.UNAVAILABLE as trouble:
            self._retry_later(pending, trouble)
            return
        except Exception as bug:  # noqa: BLE001 - the owner gets it
            outcome = bug
        try:
            self._settled(pending.item, outcome)
        finally:
            self._forget(pending)

    def _retry_later(self, pending: _PendingItem[Item], trouble: errors.PostroadError) -> None:
        if self._has_given_up:
            return
        loop = asyncio.get_running_loop()
        self._retries[pending] = loop.call_later(pending.wait, self._attempt, pending)
        pending.wait = min(2 * pending.wait, MAX_WAIT_SECONDS)
        if loop.time() >= self._report_at:
            self._report_at = loop.time() + REPORT_INTERVAL_SECONDS
            self._refused(self._waiting, trouble)

    def _forget(self, pending: _PendingItem[Item]) -> None:
        self._retries.pop(pending, None)
        self._waiting -= 1
        if not self._waiting:
            self._all_settled.set()
