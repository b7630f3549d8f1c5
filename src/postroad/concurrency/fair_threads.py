"""A few threads for costly work, shared fairly by the CPU time that each party uses, however much work others have.

Of those that wait, the party that has used least time is next: start-time fair queuing (Goyal, Vin and Cheng, 1996).
The virtual time is the used time of the party whose work began last. A party that returns starts at the virtual time,
or at what it used before if that is more. All is forgotten when no work is left.

A thread cannot be interrupted. A cancelled caller therefore waits until its work is done: the thread is taken until
then, and what it works with is in use.
"""

import asyncio
import time
from collections.abc import Callable, Hashable
from concurrent import futures
from typing import Final, TypeVar

from postroad import errors
from postroad.concurrency import fair_semaphore
from postroad.model import fair_shares

T = TypeVar("T")

# How often a cancelled caller asks its thread to stop, where that is possible.
INTERRUPT_SECONDS: Final = 0.05


class FairThreads:
    """The threads of one kind of work. A party that is alone may use all of them, unless `alpha` leaves some free.

    `clock` is the CPU time of the current thread: waiting for the interpreter lock counts for nobody.
    """

    def __init__(
        self,
        threads: int,
        *,
        name: str,
        alpha: float = fair_shares.ALPHA,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._threads = futures.ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._turns = fair_semaphore.FairSemaphore(threads, alpha=alpha, rank=self._ahead)
        self._clock = clock
        self._running = 0
        self._virtual_time = 0.0
        # Of the parties that have used more.
        self._used: dict[Hashable, float] = {}
        self._is_closed = False

    async def run(self, party: Hashable, work: Callable[[], T]) -> T:
        """Run the work in a thread, when it is the party's turn."""
        async with self._turns.hold(party):
            if self._is_closed:
                raise errors.ServiceUnavailable("the service is stopping; try again", retry_after=5)
            seconds = 0.0

            def timed() -> T:
                nonlocal seconds
                began = self._clock()
                try:
                    return work()
                finally:
                    seconds = self._clock() - began

            self._begin(party)
            try:
                return await finished(asyncio.get_running_loop().run_in_executor(self._threads, timed))
            finally:
                self._end(party, seconds)

    def _ahead(self, party: fair_shares.Party) -> float:
        """How much more the party has used than the one whose work began last."""
        return max(0.0, self._used.get(party.name, 0.0) - self._virtual_time)

    def _begin(self, party: Hashable) -> None:
        self._running += 1
        self._virtual_time = max(self._virtual_time, self._used.get(party, 0.0))

    def _end(self, party: Hashable, seconds: float) -> None:
        self._running -= 1
        self._used[party] = max(self._virtual_time, self._used.get(party, 0.0)) + seconds
        if self._running or self._turns.is_contended:
            self._used = {name: used for name, used in self._used.items() if used > self._virtual_time}
        else:
            self._used.clear()

    def close(self) -> None:
        """Start nothing more, and wait for the threads."""
        self._is_closed = True
        self._threads.shutdown(cancel_futures=True)


async def finished(work: asyncio.Future[T], *, interrupt: Callable[[], None] | None = None) -> T:
    """The result of a thread. A cancelled caller waits for it too: what it works with is in use until then."""
    cancelled: asyncio.CancelledError | None = None
    while not work.done():
        try:
            await asyncio.wait([work], timeout=None if cancelled is None else INTERRUPT_SECONDS)
        except asyncio.CancelledError as cancellation:
            cancelled = cancellation
        # Repeated, because SQLite ignores an interrupt that arrives before the statement has begun.
        if cancelled is not None and interrupt is not None and not work.done():
            interrupt()
    if cancelled is None:
        return work.result()
    work.exception()  # retrieved, so that asyncio does not report it: the caller is gone
    raise cancelled


class _Done(asyncio.Future[T]):
    """The end of work in a thread. asyncio raises a cancellation that is refused here when the future is done."""

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - the signature of the base class
        """Refuse: the caller has to wait."""
        return False


async def uninterrupted(threads: futures.ThreadPoolExecutor, work: Callable[[], T]) -> T:
    """The same as `run_in_executor` and `finished`, with one future instead of three, in half the time.

    For threads that are shut down without cancelling what waits for them.
    """
    loop = asyncio.get_running_loop()
    done: _Done[T] = _Done(loop=loop)

    def run() -> None:
        try:
            result = work()
        except BaseException as problem:  # noqa: BLE001 - the caller gets it
            loop.call_soon_threadsafe(done.set_exception, problem)
        else:
            loop.call_soon_threadsafe(done.set_result, result)

    threads.submit(run)
    return await done
