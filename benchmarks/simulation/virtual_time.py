"""An event loop whose time passes only when nothing is left to do now: a day takes as long as its events.

`time()` is the virtual clock. When nothing is ready, it jumps to the next timer; when there is no timer either,
somebody waits for something that will never happen, which is an error. There are no sockets, no threads and no signals,
so the order of events depends on nothing but the program and its random numbers.

A day has hundreds of millions of events, so the loop avoids what the standard one does for each: its handles are lists,
which are compared and made without a call of Python code, and it runs until it is stopped, not once.
"""

import asyncio
import collections
import contextvars
import gc
import heapq
import itertools
import random
import typing

RESOLUTION_SECONDS = 1e-6
# Few objects of a day are in cycles, and every collection looks at all of them.
GC_THRESHOLD = 200_000

Callback = typing.Callable[..., object]
Result = typing.TypeVar("Result")


class Handle(list[typing.Any]):
    """Time, order, callback, its arguments and its context; without a callback it was cancelled.

    The order of two differs, so that comparing them ends there.
    """

    __slots__ = ()

    def cancel(self) -> None:
        """Let it pass when its time comes."""
        self[2] = None

    def cancelled(self) -> bool:
        """Whether it was."""
        return self[2] is None

    def when(self) -> float:
        """Its time."""
        return float(self[0])


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop. Timers of one moment run in the order in which they were set."""

    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._due: collections.deque[Handle] = collections.deque()
        self._timers: list[Handle] = []
        self._order = itertools.count()
        self.failures: list[str] = []
        self.set_exception_handler(lambda _, context: self.failures.append(str(context)))

    def time(self) -> float:
        """Seconds since the beginning of the simulation."""
        return self._now

    # False, without a call of Python code: every future asks.
    get_debug = staticmethod(bool)

    def call_soon(  # type: ignore[override]  # a handle of our own
        self, callback: Callback, *args: object, context: contextvars.Context | None = None
    ) -> Handle:
        """Call at this moment, after what is due already."""
        handle = Handle((self._now, 0, callback, args, context or contextvars.copy_context()))
        self._due.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callback, *args: object, context: contextvars.Context | None = None
    ) -> Handle:
        """Set a timer. Time passes however short the delay is: a real clock advances while one asks for it."""
        when = self._now + (max(delay, RESOLUTION_SECONDS) if delay > 0 else 0.0)
        return self.call_at(when, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callback, *args: object, context: contextvars.Context | None = None
    ) -> Handle:
        """Set a timer."""
        handle = Handle((when, next(self._order), callback, args, context or contextvars.copy_context()))
        heapq.heappush(self._timers, handle)
        return handle

    def _run_once(self) -> None:
        """Everything until the loop is stopped; the loop of the standard library calls it again if it is not."""
        due, timers, pop = self._due, self._timers, heapq.heappop
        while not self._stopping:
            if not due:
                while timers and timers[0][2] is None:
                    pop(timers)
                if not timers:
                    raise RuntimeError("everybody waits, and nothing will ever happen")
                self._now = max(self._now, timers[0][0])
            now = self._now
            while timers and timers[0][0] <= now:
                due.append(pop(timers))
            for _ in range(len(due)):
                _, _, callback, args, context = due.popleft()
                if callback is not None:
                    try:
                        context.run(callback, *args)
                    except Exception as problem:  # noqa: BLE001 - as the standard loop does
                        self.call_exception_handler({"message": f"in {callback}", "exception": problem})


async def sleep(seconds: float, *, tick: float = 0.0) -> None:
    """Wait, as `asyncio.sleep` does with more effort. With a tick, it ends at the nearest tick that is not over."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    if tick:
        until = max(round(until / tick), int(loop.time() / tick) + 1) * tick
    waiting: asyncio.Future[None] = loop.create_future()
    loop.call_at(until, _end_sleep, waiting)
    await waiting


def _end_sleep(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def run(main: typing.Callable[[], typing.Coroutine[typing.Any, typing.Any, Result]], *, seed: int) -> Result:
    """Run in virtual time. The service asks the `random` module, so that one is seeded, and restored afterwards."""
    before, thresholds = random.getstate(), gc.get_threshold()
    random.seed(seed)
    gc.set_threshold(GC_THRESHOLD, *thresholds[1:])
    loop = VirtualLoop()
    try:
        result = loop.run_until_complete(main())
        if loop.failures:
            raise RuntimeError(loop.failures[0])
        return result
    finally:
        _end(loop)
        gc.set_threshold(*thresholds)
        random.setstate(before)


def _end(loop: VirtualLoop) -> None:
    """Cancel what is left of the day, and what that begins."""
    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks))
    loop.close()
