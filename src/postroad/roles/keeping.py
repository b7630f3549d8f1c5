"""The keeper's side of doors in processes of their own: it writes what they accept, and looks after them."""

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import Coroutine
from typing import Any, Final

from postroad import errors
from postroad.network import frames
from postroad.roles import door_processes, duties
from postroad.services import accepting, handing_over
from postroad.storage import access

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
    except BaseException as problem:
        await _end(kept, seconds=END_SECONDS)
        if isinstance(problem, TimeoutError):
            raise duties.StartError(f"a door did not start in {START_SECONDS:.0f} seconds") from None
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
    ends: dict[asyncio.Task[object], Kept] = {}
    for one in kept:
        one.say(handing_over.Stop())
        ends[asyncio.create_task(asyncio.to_thread(os.waitpid, one.child.process_id, 0))] = one
    _, late = await asyncio.wait(ends, timeout=seconds)
    for end in late:
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(ends[end].child.process_id, signal.SIGKILL)
    await asyncio.wait(ends)


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

    def _heard(self, frame: memoryview) -> None:
        for said in handing_over.read_from_door(frame):
            match said:
                case handing_over.Offered(number, submission):
                    self._accept(number, submission)
                case handing_over.Counted(counts):
                    self._ctx.metrics.others[self.child.name] = counts
                case handing_over.Asked(number):
                    self._begin(self._show(number))
                case handing_over.Probed(number):
                    self._begin(self._try(number))
                case handing_over.Woken():
                    self._wake(said)
                case handing_over.Ready() | handing_over.Failed():
                    self._started(said)

    def _started(self, said: handing_over.Ready | handing_over.Failed) -> None:
        if self.ready.done():  # nobody waits for it any more
            return
        if isinstance(said, handing_over.Failed):
            self.ready.set_exception(duties.StartError(said.reason))
        else:
            self.ready.set_result(None)

    def _wake(self, said: handing_over.Woken) -> None:
        if said.mail:
            self._ctx.arrivals.set()
        if said.events:
            self._ctx.tidings.set()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _accept(self, number: int, submission: accepting.Submission) -> None:
        try:
            answer = self._ctx.accept.start(submission, size=submission.message.size)
        except errors.PostroadError as refusal:
            self.say(handing_over.refused(number, refusal))
        else:
            answer.add_done_callback(functools.partial(self._answer, number))

    def _answer(self, number: int, answer: asyncio.Future[accepting.Accepted]) -> None:
        problem = answer.exception()
        if problem is None:
            self._ctx.arrivals.set()
            self.say(handing_over.Accepted(number, answer.result()))
        elif isinstance(problem, errors.PostroadError):
            self.say(handing_over.refused(number, problem))
        else:
            self._duty.log.error("accepting_failed", exc_info=problem)
            self.say(
                handing_over.refused(number, errors.InternalError("an error of this service, which its log knows"))
            )

    async def _show(self, number: int) -> None:
        try:
            self.say(handing_over.Shown(number, await self._duty.figures()))
        except Exception:
            self._duty.log.exception("figures_failed")

    async def _try(self, number: int) -> None:
        try:
            await self._ctx.accept.recover(access.bump)
        except errors.PostroadError as trouble:
            self.say(handing_over.refused(number, trouble))
        except Exception:
            self._duty.log.exception("probe_failed")
        else:
            self.say(handing_over.Sound(number))

    def say(self, what: handing_over.Wire) -> None:
        """Say something."""
        if self._line is not None:
            self._line.say(what)

    def _has_gone(self) -> None:
        self.gone.set()
        if not self.ready.done():
            self.ready.set_exception(duties.StartError("a door ended before it had started; the log says why"))
