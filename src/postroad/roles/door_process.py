"""A door in a process of its own: it opens the store when its keeper says so, and hands over what it takes."""

import asyncio
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, errors
from postroad.model import actors
from postroad.network import frames, listening
from postroad.roles import doors, duties, running
from postroad.services import context as services_context
from postroad.services import handing_over
from postroad.storage import store
from postroad.telemetry import logs

# How often the keeper is told what was counted here.
TELL_SECONDS: Final = 1.0
# How often it is told, at the most, that its engines have something to do.
WAKE_SECONDS: Final = 0.05
# Shorter than the ten seconds that Prometheus waits for an answer.
FIGURES_SECONDS: Final = 8.0
# A door without a keeper can do nothing for anybody; this is for saying so.
ORPHAN_SECONDS: Final = 1.0

# Connections to PostgreSQL that a door needs at least: one may be busy with a long list.
FEWEST_CONNECTIONS: Final = 2

STARTS: Final[Mapping[str, running.Start]] = {"api": doors.start_api, "submission": doors.start_submission}


def share(settings: config.Settings, *, doors: int) -> config.Settings:
    """The settings of one of so many doors: what costs others something is shared out among them."""
    connections = max(FEWEST_CONNECTIONS, settings.database.connections // doors)
    threads = max(1, settings.security.password_threads // doors)
    return msgspec.structs.replace(
        settings,
        database=msgspec.structs.replace(settings.database, connections=connections),
        security=msgspec.structs.replace(settings.security, password_threads=threads),
    )


async def run(
    settings: config.Settings,
    roles: Sequence[str],
    bound: Mapping[str, listening.Bound],
    line: frames.End,
    *,
    processes: int,
    log: logs.Logger,
) -> None:
    """Be a door, one of so many processes, until the keeper stops it, or has gone."""
    stopping = asyncio.Event()
    keeper = Keeper(stopping)
    await keeper.connect(line)
    await keeper.has_begun()
    if stopping.is_set():  # before anything was opened
        return
    accepting_by = functools.partial(keeper.accepting, limits=settings.limits)
    async with services_context.open_context(settings, actor=actors.SERVICE, accepting_by=accepting_by) as context:
        figures = functools.partial(keeper.figures, context)
        duty = duties.Duty(context, log, stopping, figures, bound, door_processes=processes)
        starts = {name: STARTS[name] for name in roles}
        telling = asyncio.create_task(keeper.tell_forever(context))
        waking = asyncio.create_task(keeper.wake_forever(context))
        try:
            await running.run_all(duty, starts, announce=lambda _: keeper.say(handing_over.Ready()))
        except duties.StartError as problem:
            keeper.say(handing_over.Failed(str(problem)))
        finally:
            telling.cancel()
            waking.cancel()
    keeper.hang_up()


class Keeper:
    """The keeper, as a door knows it."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        self._begun = asyncio.Event()
        self._accepting: handing_over.HandingOver | None = None
        self._line: handing_over.Line | None = None
        self._questions: dict[int, asyncio.Future[bytes]] = {}
        self._last_number = 0

    async def connect(self, line: frames.End) -> None:
        """Take up the line."""
        self._line = handing_over.Line(await frames.connect(line, self._heard, self._has_gone))

    async def has_begun(self) -> None:
        """Until the store is there, or the keeper has gone."""
        await self._begun.wait()

    def accepting(self, _store: store.Store, *, limits: config.sections.Limits) -> services_context.Accepting:
        """How this process accepts mail: not by its own store."""
        assert self._line is not None  # noqa: S101 - it was taken up first
        self._accepting = handing_over.HandingOver(
            self._line, most_waiting=limits.accept_waiting, wait_seconds=limits.accept_seconds
        )
        return self._accepting

    def say(self, what: handing_over.Wire) -> None:
        """Say something."""
        if self._line is not None:
            self._line.say(what)

    def hang_up(self) -> None:
        """End the line; what was said before arrives."""
        if self._line is not None:
            self._line.close()

    async def figures(self, ctx: services_context.Context) -> bytes:
        """What all processes have counted."""
        self._last_number += 1
        number = self._last_number
        question: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._questions[number] = question
        try:
            self.say(handing_over.Counted(ctx.metrics.snapshot()))
            self.say(handing_over.Asked(number))
            async with asyncio.timeout(FIGURES_SECONDS):
                return await question
        except TimeoutError:
            raise errors.ServiceUnavailable("the process that knows does not answer in time", retry_after=5) from None
        finally:
            del self._questions[number]

    async def tell_forever(self, ctx: services_context.Context) -> None:
        """Tell what was counted, again and again."""
        while True:
            self.say(handing_over.Counted(ctx.metrics.snapshot()))
            await asyncio.sleep(TELL_SECONDS)

    async def wake_forever(self, ctx: services_context.Context) -> None:
        """Pass on that mail or events are queued."""
        while True:
            waits = [asyncio.create_task(event.wait()) for event in (ctx.arrivals, ctx.tidings)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            self.say(handing_over.Woken(mail=ctx.arrivals.is_set(), events=ctx.tidings.is_set()))
            ctx.arrivals.clear()
            ctx.tidings.clear()
            await asyncio.sleep(WAKE_SECONDS)

    def _heard(self, frame: memoryview) -> None:
        for said in handing_over.read_from_keeper(frame):
            match said:
                case handing_over.Begin():
                    self._begun.set()
                case handing_over.Stop():
                    self._stopping.set()
                case handing_over.Shown(number, text):
                    if (question := self._questions.get(number)) and not question.done():
                        question.set_result(text)
                case _:
                    if self._accepting is not None:
                        self._accepting.heard(said)

    def _has_gone(self) -> None:
        self._stopping.set()
        self._begun.set()
        asyncio.get_running_loop().call_later(ORPHAN_SECONDS, os._exit, 1)
        if self._accepting is not None:
            self._accepting.end()
