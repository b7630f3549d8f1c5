"""An event loop whose time passes only when nothing is left to do now: a day takes as long as its events.

`time()` is the virtual clock. When nothing is ready, it jumps to the next timer; when there is no timer either,
somebody waits for something that will never happen, which is an error. There are no sockets, no threads and no signals,
so the order of events depends on nothing but the program and its random numbers.
"""

import asyncio
import collections
import contextvars
import heapq
import itertools
import random
import typing

RESOLUTION_SECONDS = 1e-6

Callback = typing.Callable[..., object]
Result = typing.TypeVar("Result")


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop. Timers of one moment run in the order in which they were set."""

    _ready: collections.deque[asyncio.Handle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._order = itertools.count()
        self.failures: list[str] = []
        self.set_exception_handler(lambda _, context: self.failures.append(str(context)))

    def time(self) -> float:
        """Seconds since the beginning of the simulation."""
        return self._now

    def call_later(
        self, delay: float, callback: Callback, *args: object, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer. Time passes however short the delay is: a real clock advances while one asks for it."""
        when = self._now + (max(delay, RESOLUTION_SECONDS) if delay > 0 else 0.0)
        return self.call_at(when, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callback, *args: object, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def _run_once(self) -> None:
        """Everything that is ready now; the loop of the standard library calls it again and again."""
        ready, timers = self._ready, self._timers
        if not ready and not self._stopping:
            while timers and timers[0][2].cancelled():
                heapq.heappop(timers)
            if not timers:
                raise RuntimeError("everybody waits, and nothing will ever happen")
            self._now = max(self._now, timers[0][0])
        while timers and timers[0][0] <= self._now:
            timer = heapq.heappop(timers)[2]
            if not timer.cancelled():
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()  # noqa: SLF001 - as every event loop does


def run(main: typing.Callable[[], typing.Coroutine[typing.Any, typing.Any, Result]], *, seed: int) -> Result:
    """Run in virtual time. The service asks the `random` module, so that one is seeded, and restored afterwards."""
    before = random.getstate()
    random.seed(seed)
    loop = VirtualLoop()
    try:
        result = loop.run_until_complete(main())
        if loop.failures:
            raise RuntimeError(loop.failures[0])
        return result
    finally:
        _end(loop)
        random.setstate(before)


def _end(loop: VirtualLoop) -> None:
    """Cancel what is left of the day, and what that begins."""
    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.wait(tasks))
    loop.close()
