"""A frontend process: it runs listeners and sends accepted mail to the writer process, which commits it."""

import asyncio
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from postroad import config, errors
from postroad import context as services_context
from postroad.mail.accept import transaction, writer_protocol
from postroad.model.people import callers
from postroad.network import framing, listener
from postroad.roles import background, composition, listeners, role, supervisor
from postroad.services.people import passwords
from postroad.telemetry import logs

# How often metrics are sent to the writer.
METRICS_INTERVAL_SECONDS: Final = 1.0
# Minimum interval between wakeups of the engines in the writer process.
WAKEUP_INTERVAL_SECONDS: Final = 0.05
# Shorter than the default scrape timeout of Prometheus, 10 seconds.
METRICS_TIMEOUT_SECONDS: Final = 8.0
# How long a frontend that lost its writer may take to answer with errors before it exits.
ORPHAN_SECONDS: Final = 1.0

# Minimum PostgreSQL connections of a frontend: a long list may occupy one.
MIN_CONNECTIONS: Final = 2
# Room for a few of the largest messages.
MIN_SPOOL_MEGABYTES: Final = 64

FRONTEND_ROLES: Final[Mapping[str, supervisor.Start]] = {
    "api": listeners.start_api,
    "submission": listeners.start_submission,
}


def divide_limits(settings: config.Settings, *, frontends: int) -> config.Settings:
    """The settings of one frontend: limits on shared resources are divided by the number of frontends."""
    connections = max(MIN_CONNECTIONS, settings.database.connections // frontends)
    spool = max(MIN_SPOOL_MEGABYTES, settings.limits.spool_megabytes // frontends)
    return msgspec.structs.replace(
        settings,
        database=msgspec.structs.replace(settings.database, connections=connections),
        limits=msgspec.structs.replace(settings.limits, spool_megabytes=spool),
    )


async def run(
    settings: config.Settings,
    roles: Sequence[str],
    bound: Mapping[str, listener.BoundSockets],
    channel: framing.SocketEnd,
    *,
    processes: int,
    load: supervisor.Load | None,
    log: logs.Logger,
) -> None:
    """Run a frontend until the writer stops it or disconnects. `processes` is the number of frontends.

    `load` reads the settings again.
    """
    stopping, draining = asyncio.Event(), asyncio.Event()
    writer = WriterConnection(stopping, draining)
    await writer.connect(channel)
    await writer.wait_for_start()
    if stopping.is_set():  # before anything was opened
        return
    accept_commits = writer.accept_commits(settings.testing)
    async with composition.open_context(
        settings,
        actor=callers.SERVICE,
        accept_commits=accept_commits,
        password_threads=max(1, passwords.THREADS // processes),
        log=log,
    ) as context:
        await context.queue_limit.read_disk()
        render_metrics = functools.partial(writer.render_metrics, context)
        role_context = role.RoleContext(
            context,
            log,
            stopping,
            render_metrics,
            draining,
            bound=bound,
            frontend_processes=processes,
            acme=background.watched_certificate(context, log),
        )
        if load is not None:
            writer.on_reload = functools.partial(
                supervisor.reload, context, lambda: divide_limits(load(), frontends=processes), log=log
            )
        starts = background.with_certificate(role_context, {name: FRONTEND_ROLES[name] for name in roles})
        metrics_task = asyncio.create_task(writer.report_metrics_forever(context))
        wakeup_task = asyncio.create_task(writer.forward_wakeups_forever(context))
        try:
            await supervisor.run_all(role_context, starts, announce=lambda _: writer.send(writer_protocol.Ready()))
        except role.StartError as problem:
            writer.send(writer_protocol.StartFailed(str(problem)))
        finally:
            metrics_task.cancel()
            wakeup_task.cancel()
    writer.close()


class WriterConnection:
    """A frontend's connection to the writer process."""

    def __init__(self, stopping: asyncio.Event, draining: asyncio.Event) -> None:
        self._stopping = stopping
        self._draining = draining
        self.on_reload: Callable[[], None] | None = None
        self._started = asyncio.Event()
        self._remote_commits: writer_protocol.RemoteCommits | None = None
        self._channel: writer_protocol.Channel | None = None
        self._pending_metrics: dict[int, asyncio.Future[bytes]] = {}
        self._last_number = 0

    async def connect(self, channel: framing.SocketEnd) -> None:
        self._channel = writer_protocol.Channel(await framing.connect(channel, self._on_frame, self._on_disconnect))

    async def wait_for_start(self) -> None:
        """Wait until the writer has opened the store, or has disconnected."""
        await self._started.wait()

    def accept_commits(self, testing: config.sections.Testing) -> transaction.AcceptCommits:
        """Commit accepted mail through the writer instead of this process's own store."""
        assert self._channel is not None  # noqa: S101 - `connect` comes first
        self._remote_commits = writer_protocol.RemoteCommits(
            self._channel, max_waiting=testing.accept_waiting, wait_seconds=testing.accept_seconds
        )
        return self._remote_commits

    def send(self, what: writer_protocol.WireMessage) -> None:
        if self._channel is not None:
            self._channel.send(what)

    def close(self) -> None:
        """Close the channel; messages sent before are still delivered."""
        if self._channel is not None:
            self._channel.close()

    async def render_metrics(self, ctx: services_context.Context) -> bytes:
        """The metrics of all processes, rendered by the writer."""
        self._last_number += 1
        number = self._last_number
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending_metrics[number] = reply
        try:
            self.send(writer_protocol.MetricsSnapshot(ctx.metrics.snapshot()))
            self.send(writer_protocol.MetricsRequest(number))
            async with asyncio.timeout(METRICS_TIMEOUT_SECONDS):
                return await reply
        except TimeoutError:
            raise errors.ServiceUnavailable(
                "the writer process did not return metrics in time", retry_after=5
            ) from None
        finally:
            del self._pending_metrics[number]

    async def report_metrics_forever(self, ctx: services_context.Context) -> None:
        while True:
            self.send(writer_protocol.MetricsSnapshot(ctx.metrics.snapshot()))
            await asyncio.sleep(METRICS_INTERVAL_SECONDS)

    async def forward_wakeups_forever(self, ctx: services_context.Context) -> None:
        while True:
            waits = [asyncio.create_task(event.wait()) for event in (ctx.mail_wakeup, ctx.webhook_wakeup)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            self.send(writer_protocol.Wakeup(mail=ctx.mail_wakeup.is_set(), events=ctx.webhook_wakeup.is_set()))
            ctx.mail_wakeup.clear()
            ctx.webhook_wakeup.clear()
            await asyncio.sleep(WAKEUP_INTERVAL_SECONDS)

    def _on_frame(self, frame: memoryview) -> None:
        for message in writer_protocol.decode_from_writer(frame):
            match message:
                case writer_protocol.StoreReady():
                    self._started.set()
                case writer_protocol.Reload():
                    if self.on_reload is not None:
                        self.on_reload()
                case writer_protocol.Drain():
                    self._draining.set()
                case writer_protocol.Stop():
                    self._stopping.set()
                case writer_protocol.MetricsReply(number, text):
                    if (reply := self._pending_metrics.get(number)) and not reply.done():
                        reply.set_result(text)
                case _:
                    if self._remote_commits is not None:
                        self._remote_commits.on_reply(message)

    def _on_disconnect(self) -> None:
        self._stopping.set()
        self._started.set()
        asyncio.get_running_loop().call_later(ORPHAN_SECONDS, os._exit, 1)
        if self._remote_commits is not None:
            self._remote_commits.on_writer_gone()
