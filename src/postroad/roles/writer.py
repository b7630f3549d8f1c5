"""The writer process: it commits what frontends accept, and supervises them."""

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import Coroutine
from typing import Any, Final

from postroad import errors
from postroad.network import framing
from postroad.roles import frontends as roles_frontends
from postroad.roles import role
from postroad.services.acceptance import batch, transaction
from postroad.services.writer import protocol
from postroad.storage import access_version

# How long a frontend may take to open the store and listen, on a busy machine.
START_SECONDS: Final = 60.0
# Added to the grace period before a frontend is killed.
END_SECONDS: Final = 5.0


async def start(role_context: role.RoleContext, *, frontends: roles_frontends.Frontends) -> role.Started:
    """Start the frontends; returns when all of them listen."""
    connections = [FrontendConnection(role_context, child) for child in frontends.children]
    for one in connections:
        await one.connect()
    try:
        async with asyncio.timeout(START_SECONDS):
            await asyncio.gather(*(one.ready for one in connections))
    except BaseException as problem:
        await _stop(connections, seconds=END_SECONDS)
        if isinstance(problem, TimeoutError):
            raise role.StartError(f"a frontend did not start within {START_SECONDS:.0f} seconds") from None
        raise

    async def work() -> None:
        reloads = asyncio.create_task(_pass_on_reloads(role_context, connections))
        drain = asyncio.create_task(_pass_on_drain(role_context, connections))
        stop = asyncio.create_task(role_context.stopping.wait())
        gone = [asyncio.create_task(one.gone.wait()) for one in connections]
        try:
            await asyncio.wait([stop, *gone], return_when=asyncio.FIRST_COMPLETED)
            for one in connections:
                if one.gone.is_set() and not role_context.stopping.is_set():
                    role_context.log.error("frontend_lost", frontend=one.child.name)
        finally:
            for task in (reloads, drain, stop, *gone):
                task.cancel()
            settings = role_context.context.settings
            grace = max(settings.http.grace_seconds, settings.submission.grace_seconds)
            await _stop(connections, seconds=grace + END_SECONDS)

    return role.Started(work, frontends.addresses)


async def _pass_on_reloads(role_context: role.RoleContext, connections: list["FrontendConnection"]) -> None:
    while True:
        await role_context.reloaded.wait()
        role_context.reloaded.clear()
        for one in connections:
            one.send(protocol.Reload())


async def _pass_on_drain(role_context: role.RoleContext, connections: list["FrontendConnection"]) -> None:
    await role_context.draining.wait()
    for one in connections:
        one.send(protocol.Drain())


async def _stop(connections: list["FrontendConnection"], *, seconds: float) -> None:
    """Stop all frontends; those that do not exit in time are killed."""
    ends: dict[asyncio.Task[object], FrontendConnection] = {}
    for one in connections:
        one.send(protocol.Stop())
        ends[asyncio.create_task(asyncio.to_thread(os.waitpid, one.child.process_id, 0))] = one
    _, late = await asyncio.wait(ends, timeout=seconds)
    for end in late:
        with contextlib.suppress(ProcessLookupError):  # it has just exited
            os.kill(ends[end].child.process_id, signal.SIGKILL)
    await asyncio.wait(ends)


class FrontendConnection:
    """The writer's connection to one frontend."""

    def __init__(self, role_context: role.RoleContext, child: roles_frontends.FrontendProcess) -> None:
        self.child = child
        self.gone = asyncio.Event()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._role_context = role_context
        self._ctx = role_context.context
        self._channel: protocol.Channel | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self) -> None:
        """Open the channel and let the frontend start."""
        self._channel = protocol.Channel(await framing.connect(self.child.channel, self._on_frame, self._on_disconnect))
        self._channel.send(protocol.StoreReady())

    def _on_frame(self, frame: memoryview) -> None:
        for message in protocol.decode_from_frontend(frame):
            match message:
                case (
                    protocol.Submit(number, entry)
                    | protocol.SubmitBatch(number, entry)
                    | protocol.CountRefused(number, entry)
                ):
                    self._accept(number, entry)
                case protocol.MetricsSnapshot(counts):
                    self._ctx.metrics.others[self.child.name] = counts
                case protocol.MetricsRequest(number):
                    self._begin(self._send_metrics(number))
                case protocol.Probe(number):
                    self._begin(self._probe(number))
                case protocol.Wakeup():
                    self._wake(message)
                case protocol.Ready() | protocol.StartFailed():
                    self._started(message)

    def _started(self, message: protocol.Ready | protocol.StartFailed) -> None:
        if self.ready.done():  # start has already failed or timed out
            return
        if isinstance(message, protocol.StartFailed):
            self.ready.set_exception(role.StartError(message.reason))
        else:
            self.ready.set_result(None)

    def _wake(self, message: protocol.Wakeup) -> None:
        if message.mail:
            self._ctx.mail_wakeup.set()
        if message.events:
            self._ctx.webhook_wakeup.set()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _accept(self, number: int, entry: batch.Entry) -> None:
        try:
            answer = self._ctx.accept_commits.start(
                entry, party=batch.account_of(entry), size=batch.size_of(entry), count=batch.count_of(entry)
            )
        except errors.PostroadError as refusal:
            self.send(protocol.rejection_of(number, refusal))
        else:
            answer.add_done_callback(functools.partial(self._answer, number))

    def _answer(self, number: int, answer: asyncio.Future[transaction.Accepted]) -> None:
        problem = answer.exception()
        if problem is None:
            self.send(protocol.SubmitOk(number, answer.result()))
        elif isinstance(problem, errors.PostroadError):
            self.send(protocol.rejection_of(number, problem))
        else:
            self._role_context.log.error("acceptance_failed", exc_info=problem)
            self.send(protocol.rejection_of(number, errors.InternalError("internal error; see the log")))

    async def _send_metrics(self, number: int) -> None:
        try:
            self.send(protocol.MetricsReply(number, await self._role_context.render_metrics()))
        except Exception:
            self._role_context.log.exception("metrics_failed")

    async def _probe(self, number: int) -> None:
        try:
            await self._ctx.accept_commits.recover(access_version.bump)
        except errors.PostroadError as error:
            self.send(protocol.rejection_of(number, error))
        except Exception:
            self._role_context.log.exception("probe_failed")
        else:
            self.send(protocol.ProbeOk(number))

    def send(self, what: protocol.WireMessage) -> None:
        """Send a message to the frontend."""
        if self._channel is not None:
            self._channel.send(what)

    def _on_disconnect(self) -> None:
        self.gone.set()
        if not self.ready.done():
            self.ready.set_exception(role.StartError("a frontend exited before it had started; see the log"))
