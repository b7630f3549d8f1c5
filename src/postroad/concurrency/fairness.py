"""What parties share so that none can take all: a semaphore, threads, and the event loop."""

import asyncio
import contextlib
import enum
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from concurrent import futures
from typing import Final, TypeVar

from postroad import errors
from postroad.model.delivery import fair_shares

# A semaphore that is shared fairly: parties that wait take turns, and none can hold all of many units.
#
# `model/delivery/fair_shares.py` decides who may have another unit, and who is next.

Parties = tuple[fair_shares.Party, ...]


class FairSemaphore:
    """Units of a resource, held by parties such as accounts."""

    def __init__(self, units: int, *, alpha: float = fair_shares.ALPHA, rank: fair_shares.Rank | None = None) -> None:
        self._shares = fair_shares.FairShares(units)
        self._alpha = alpha
        self._waiting: fair_shares.FairQueue[asyncio.Future[None]] = fair_shares.FairQueue(self._shares, rank=rank)
        self.is_contended = False  # whether somebody waits

    @contextlib.asynccontextmanager
    async def hold(self, name: Hashable, *, timeout: float | None = None) -> AsyncIterator[None]:  # noqa: ASYNC109 - only of the wait
        """Wait for a unit that counts for one party, and hold it. Raises TimeoutError after `timeout` seconds."""
        parties = (fair_shares.Party(name, self._alpha),)
        if not self.try_acquire(parties):
            async with asyncio.timeout(timeout):
                await self.wait(parties)
        try:
            yield
        finally:
            self.release(parties)

    def try_acquire(self, parties: Parties) -> bool:
        """Take a unit if the parties may have it now."""
        return not self._waiting.is_waiting(parties) and self._shares.take(parties)

    async def wait(self, parties: Parties, *, is_first: bool = False) -> None:
        """Wait for a unit and take it; whoever is first comes before all that wait for the same parties."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.push(parties, turn, is_first=is_first)
        self.is_contended = True
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._waiting.discard(parties, turn)
                self.is_contended = bool(self._waiting)
            else:
                self.release(parties)
            raise

    def release(self, parties: Parties) -> None:
        self._shares.give_back(parties)
        self._hand_out()

    def exchange(self, held: Parties, wanted: Parties) -> bool:
        """Let a unit count for other parties from now on.

        False when they may not have it, or when it is the turn of somebody who holds less; then nothing changes.
        """
        self._shares.give_back(held)
        first = self._waiting.first()
        is_outranked = first is not None and self._shares.held(first[0]) < self._shares.held(wanted[0])
        if is_outranked or not self._shares.take(wanted):
            self._shares.add(held)
            return False
        if held != wanted:
            self._hand_out()
        return True

    def is_wanted(self, held: Parties) -> bool:
        """Whether somebody who waits could have a unit if it were returned."""
        if not self.is_contended:
            return False
        self._shares.give_back(held)
        first = self._waiting.first()
        self._shares.add(held)
        return first is not None

    def would_help(self, held: Parties, wanted: Parties) -> bool:
        """Whether these parties could have a unit if it were returned."""
        self._shares.give_back(held)
        is_free = all(map(self._shares.has_share, wanted))
        self._shares.add(held)
        return is_free

    def count(self, party: fair_shares.Party, change: int) -> None:
        """Let a unit count for another party as well, or no longer."""
        self._shares.count(party, change)

    def _hand_out(self) -> None:
        if not self.is_contended:
            return
        while (parties := self._waiting.first()) is not None:
            turn = self._waiting.pop(parties)
            if turn.cancelled():  # a moment ago: its task has not seen it yet
                self._shares.give_back(parties)
            else:
                turn.set_result(None)
        self.is_contended = bool(self._waiting)


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
        self._turns = FairSemaphore(threads, alpha=alpha, rank=self._ahead)
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


class WorkThread:
    """One thread. A cancelled caller waits until its work has ended, because the work still uses its arguments.

    It takes half the time of an executor: one future instead of three, and a queue instead of locks.
    """

    def __init__(self, *, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        # A daemon, which ends with its process: nobody was told of what had not ended.
        self._thread = threading.Thread(target=_serve, args=(self._work,), name=name, daemon=True)
        self._is_started = False
        self._is_closed = False

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Begin the work after what was begun before; the future has its result or its error."""
        if self._is_closed:
            msg = f"{self._thread.name} is closed"
            raise RuntimeError(msg)
        if not self._is_started:  # not before: a process may fork until then
            self._thread.start()
            self._is_started = True
        loop = asyncio.get_running_loop()
        done: _Done[T] = _Done(loop=loop)

        def run_and_report() -> None:
            try:
                result = work()
            except BaseException as problem:  # noqa: BLE001 - the caller gets it
                loop.call_soon_threadsafe(done.set_exception, problem)
            else:
                loop.call_soon_threadsafe(done.set_result, result)

        self._work.put(run_and_report)
        return done

    def close(self) -> None:
        """Wait for what was begun; nothing more begins."""
        self._is_closed = True
        self._work.put(None)
        if self._is_started:
            self._thread.join()


def _serve(work: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    for run_and_report in iter(work.get, None):
        with contextlib.suppress(RuntimeError):  # its event loop is closed, and nobody waits
            run_and_report()


# Delays of requests and responses, so that a flood takes a share of the event loop and not all of it.
#
# A refusal costs the service almost as much as a success, and a client that sends its next request as soon as it has an
# answer gets thousands of them a second. So each party, an account or the networks around a stranger, has a pace for
# its refusals, one for everything else that is not an accepted message, and one for files: accepted messages have a
# rate of their own. What comes faster waits, and a connection sends nothing more until it has its answer. A client that
# honours Retry-After is never delayed: a whole burst is served at once.
#
# An account that is alone loses nothing: it is delayed only while another account is active as well.

# What is served at once: forty pages, or an office that begins its day.
DELAY_BURST: Final = 200
# Clients often time out after ten seconds or more.
MAX_DELAY_SECONDS: Final = 2.0
# A page takes several times as long as another request: 15 ms.
PAGE_UNITS: Final = 5
# How long an account counts as active after a request.
DELAY_ACTIVE_SECONDS: Final = 60.0
# Parties that are within their pace carry no information and are dropped when this many are kept.
MAX_DELAYED_PARTIES: Final = 10_000


class Pace(enum.Enum):
    """What is counted apart, so that a flood of one does not delay the others."""

    REFUSALS = "refusals"
    REQUESTS = "requests"
    FILES = "files"
    PROBES = "probes"


# Units a second: at most a third of the time of a process.
DELAY_RATES: Final = {Pace.REFUSALS: 50, Pace.REQUESTS: 100, Pace.FILES: 100, Pace.PROBES: 100}


class ResponseDelays:
    """The paces of each party, in this process."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # The account of the latest request.
        self._account_id: str | None = None
        self._shared_until = 0.0
        # When the next unit of a party is due at its pace.
        self._due: dict[tuple[str, Pace], float] = {}
        # The accounts of the pages that began in this turn of the event loop.
        self._begun: set[str] = set()

    def note_account(self, account_id: str) -> None:
        if account_id == self._account_id:
            return
        if self._account_id is not None:
            self._shared_until = self._clock() + DELAY_ACTIVE_SECONDS
        self._account_id = account_id

    def of_account(self, account_id: str, pace: Pace, *, units: int = 1) -> float:
        """How many seconds a request of an account waits, or its answer. MAX_DELAY_SECONDS is too much: not counted."""
        now = self._clock()
        return 0.0 if now >= self._shared_until else self._count(((account_id, 1),), pace, units, now)

    def of_stranger(self, networks: Iterable[tuple[str, int]], pace: Pace, *, units: int = 1) -> float:
        """The same for a client without a credential: the networks around it, and how many times the pace each has."""
        return self._count(networks, pace, units, self._clock())

    async def take_turn(self, account_id: str) -> None:
        """Begin a page: one of an account in each turn of the event loop, so that others have theirs in between."""
        while account_id in self._begun:  # noqa: ASYNC110 - the next turn is what it waits for
            await asyncio.sleep(0)
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._begun.clear)
        self._begun.add(account_id)

    def _count(self, parties: Iterable[tuple[str, int]], pace: Pace, units: int, now: float) -> float:
        if len(self._due) >= MAX_DELAYED_PARTIES:
            self._due = {party: due for party, due in self._due.items() if due > now}
        rate = DELAY_RATES[pace]
        delay, after = 0.0, {}
        for party, multiple in parties:
            due = max(self._due.get((party, pace), now), now)
            # The burst of a larger network is larger too, so it lasts as long.
            delay = max(delay, due - now - DELAY_BURST / rate)
            after[party, pace] = due + units / (rate * multiple)
        if delay >= MAX_DELAY_SECONDS:
            return MAX_DELAY_SECONDS
        self._due.update(after)
        return delay
