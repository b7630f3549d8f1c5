"""The keeper's side of doors in processes of their own: it writes what they accept, and looks after them."""

import asyncio
import contextlib
import functools
import os
import signal
from typing import Final

from postroad import errors
from postroad.network import frames
from postroad.roles import door_processes, duties
from postroad.services import accepting, handing_over

# What a door needs to open the store and listen, on a busy machine.
START_SECONDS: Final = 60.0
# Beyond its grace time, for saying good-bye.
END_SECONDS: Final = 5.0


async def start(duty: duties.Duty, *, apart: door_processes.Doors) -> duties.Started:
    """Let the doors open the store and listen; returns when all of them do."""
    kept = [Kept(duty, child) for child in apart.children]
    for one in kept:
        await one.connect()
    try:
        async with asyncio.timeout(START_SECONDS):
            await asyncio.gather(*(one.ready for one in kept))
    except TimeoutError:
        raise duties.StartError(f"a door did not start in {START_SECONDS:.0f} seconds") from None
    except BaseException:
        await _end(kept, seconds=END_SECONDS)
        raise

    async def work() -> None:
        stop = asyncio.create_task(duty.stopping.wait())
        gone = [asyncio.create_task(one.gone.wait()) for one in kept]
        try:
            await asyncio.wait([stop, *gone], return_when=asyncio.FIRST_COMPLETED)
            for one in kept:
                if one.gone.is_set() and not duty.stopping.is_set():
                    duty.log.error("door_lost", door=one.child.name)
        finally:
            for task in (stop, *gone):
                task.cancel()
            settings = duty.context.settings
            grace = max(settings.http.grace_seconds, settings.submission.grace_seconds)
            await _end(kept, seconds=grace + END_SECONDS)

    return duties.Started(work, apart.addresses)


async def _end(kept: list["Kept"], *, seconds: float) -> None:
    """Stop all doors; those that do not end in time are killed."""
    for one in kept:
        one.signal(signal.SIGTERM)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await asyncio.gather(*(one.gone.wait() for one in kept))
    for one in kept:
        if not one.gone.is_set():
            one.signal(signal.SIGKILL)
        await asyncio.to_thread(os.waitpid, one.child.process_id, 0)


class Kept:
    """A door, as its keeper knows it."""

    def __init__(self, duty: duties.Duty, child: door_processes.Child) -> None:
        self.child = child
        self.gone = asyncio.Event()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._duty = duty
        self._ctx = duty.context
        self._line: handing_over.Line | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Take up the line, and let the door begin."""
        self._line = handing_over.Line(await frames.connect(self.child.line, self._heard, self._has_gone))
        self._line.say(handing_over.Begin())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process; it is not waited for before it has gone, so the number is still its own."""
        os.kill(self.child.process_id, number)

    def _heard(self, frame: memoryview) -> None:
        for said in handing_over.read_from_door(frame):
            match said:
                case handing_over.Offered(number, submission):
                    self._accept(number, submission)
                case handing_over.Counted(counts):
                    self._ctx.metrics.others[self.child.name] = counts
                case handing_over.Asked(number):
                    task = asyncio.get_running_loop().create_task(self._show(number))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                case handing_over.Woken(mail, events):
                    if mail:
                        self._ctx.arrivals.set()
                    if events:
                        self._ctx.tidings.set()
                case handing_over.Ready():
                    self.ready.set_result(None)
                case handing_over.Failed(reason):
                    self.ready.set_exception(duties.StartError(reason))

    def _accept(self, number: int, submission: accepting.Submission) -> None:
        try:
            answer = self._ctx.accept.start(submission, size=submission.message.size)
        except errors.PostroadError as refusal:
            self._say(handing_over.refused(number, refusal))
        else:
            answer.add_done_callback(functools.partial(self._answer, number))

    def _answer(self, number: int, answer: asyncio.Future[accepting.Accepted]) -> None:
        problem = answer.exception()
        if problem is None:
            self._ctx.arrivals.set()
            self._say(handing_over.Accepted(number, answer.result()))
        elif isinstance(problem, errors.PostroadError):
            self._say(handing_over.refused(number, problem))
        else:
            self._duty.log.error("accepting_failed", exc_info=problem)
            self._say(
                handing_over.refused(number, errors.InternalError("an error of this service, which its log knows"))
            )

    async def _show(self, number: int) -> None:
        self._say(handing_over.Shown(number, await self._duty.figures()))

    def _say(self, what: handing_over.Wire) -> None:
        if self._line is not None:
            self._line.say(what)

    def _has_gone(self) -> None:
        self.gone.set()
        if not self.ready.done():
            self.ready.set_exception(duties.StartError("a door ended before it had started; the log says why"))
