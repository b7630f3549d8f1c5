"""A door in a process of its own: it opens the store when its keeper says so, and hands over what it takes."""

import asyncio
import functools
import os
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, errors
from postroad.model import actors
from postroad.network import framing, listener
from postroad.roles import listeners, role, supervisor
from postroad.services import context as services_context
from postroad.services.writer import client
from postroad.storage import store
from postroad.telemetry import logs

# How often the keeper is told what was counted here.
METRICS_INTERVAL_SECONDS: Final = 1.0
# How often it is told, at the most, that its engines have something to do.
WAKEUP_INTERVAL_SECONDS: Final = 0.05
# Shorter than the ten seconds that Prometheus waits for an answer.
METRICS_TIMEOUT_SECONDS: Final = 8.0
# A door without a keeper can do nothing for anybody; this is for saying so.
ORPHAN_SECONDS: Final = 1.0

# Connections to PostgreSQL that a door needs at least: one may be busy with a long list.
MIN_CONNECTIONS: Final = 2

FRONTEND_ROLES: Final[Mapping[str, supervisor.Start]] = {
    "api": listeners.start_api,
    "submission": listeners.start_submission,
}


def divide_limits(settings: config.Settings, *, doors: int) -> config.Settings:
    """The settings of one of so many doors: what costs others something is shared out among them."""
    connections = max(MIN_CONNECTIONS, settings.database.connections // doors)
    threads = max(1, settings.security.password_threads // doors)
    return msgspec.structs.replace(
        settings,
        database=msgspec.structs.replace(settings.database, connections=connections),
        security=msgspec.structs.replace(settings.security, password_threads=threads),
    )


async def run(
    settings: config.Settings,
    roles: Sequence[str],
    bound: Mapping[str, listener.BoundSockets],
    line: framing.SocketEnd,
    *,
    processes: int,
    log: logs.Logger,
) -> None:
    """Be a door, one of so many processes, until the keeper stops it, or has gone."""
    stopping = asyncio.Event()
    writer = WriterConnection(stopping)
    await writer.connect(line)
    await writer.wait_for_start()
    if stopping.is_set():  # before anything was opened
        return
    make_accept_commits = functools.partial(writer.accepting, limits=settings.limits)
    async with services_context.open_context(
        settings, actor=actors.SERVICE, make_accept_commits=make_accept_commits
    ) as context:
        render_metrics = functools.partial(writer.render_metrics, context)
        role_context = role.RoleContext(context, log, stopping, render_metrics, bound, frontend_processes=processes)
        starts = {name: FRONTEND_ROLES[name] for name in roles}
        metrics_task = asyncio.create_task(writer.report_metrics_forever(context))
        wakeup_task = asyncio.create_task(writer.forward_wakeups_forever(context))
        try:
            await supervisor.run_all(role_context, starts, announce=lambda _: writer.send(client.Ready()))
        except role.StartError as problem:
            writer.send(client.StartFailed(str(problem)))
        finally:
            metrics_task.cancel()
            wakeup_task.cancel()
    writer.close()


class WriterConnection:
    """The keeper, as a door knows it."""

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        self._started = asyncio.Event()
        self._accepting: client.RemoteCommits | None = None
        self._channel: client.Channel | None = None
        self._pending_metrics: dict[int, asyncio.Future[bytes]] = {}
        self._last_number = 0

    async def connect(self, line: framing.SocketEnd) -> None:
        """Take up the line."""
        self._channel = client.Channel(await framing.connect(line, self._on_frame, self._on_disconnect))

    async def wait_for_start(self) -> None:
        """Until the store is there, or the keeper has gone."""
        await self._started.wait()

    def accepting(self, _store: store.Store, *, limits: config.sections.Limits) -> services_context.AcceptCommits:
        """How this process accepts mail: not by its own store."""
        assert self._channel is not None  # noqa: S101 - it was taken up first
        self._accepting = client.RemoteCommits(
            self._channel, max_waiting=limits.accept_waiting, wait_seconds=limits.accept_seconds
        )
        return self._accepting

    def send(self, what: client.WireMessage) -> None:
        """Say something."""
        if self._channel is not None:
            self._channel.send(what)

    def close(self) -> None:
        """End the line; what was said before arrives."""
        if self._channel is not None:
            self._channel.close()

    async def render_metrics(self, ctx: services_context.Context) -> bytes:
        """What all processes have counted."""
        self._last_number += 1
        number = self._last_number
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending_metrics[number] = reply
        try:
            self.send(client.MetricsSnapshot(ctx.metrics.snapshot()))
            self.send(client.MetricsRequest(number))
            async with asyncio.timeout(METRICS_TIMEOUT_SECONDS):
                return await reply
        except TimeoutError:
            raise errors.ServiceUnavailable("the process that knows does not answer in time", retry_after=5) from None
        finally:
            del self._pending_metrics[number]

    async def report_metrics_forever(self, ctx: services_context.Context) -> None:
        """Tell what was counted, again and again."""
        while True:
            self.send(client.MetricsSnapshot(ctx.metrics.snapshot()))
            await asyncio.sleep(METRICS_INTERVAL_SECONDS)

    async def forward_wakeups_forever(self, ctx: services_context.Context) -> None:
        """Pass on that mail or events are queued."""
        while True:
            waits = [asyncio.create_task(event.wait()) for event in (ctx.mail_wakeup, ctx.webhook_wakeup)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            self.send(client.Wakeup(mail=ctx.mail_wakeup.is_set(), events=ctx.webhook_wakeup.is_set()))
            ctx.mail_wakeup.clear()
            ctx.webhook_wakeup.clear()
            await asyncio.sleep(WAKEUP_INTERVAL_SECONDS)

    def _on_frame(self, frame: memoryview) -> None:
        for message in client.decode_from_writer(frame):
            match message:
                case client.StoreReady():
                    self._started.set()
                case client.Stop():
                    self._stopping.set()
                case client.MetricsReply(number, text):
                    if (reply := self._pending_metrics.get(number)) and not reply.done():
                        reply.set_result(text)
                case _:
                    if self._accepting is not None:
                        self._accepting.on_reply(message)

    def _on_disconnect(self) -> None:
        self._stopping.set()
        self._started.set()
        asyncio.get_running_loop().call_later(ORPHAN_SECONDS, os._exit, 1)
        if self._accepting is not None:
            self._accepting.on_writer_gone()
