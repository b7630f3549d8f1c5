"""The delivery engine of one process: builds its parts, and runs them until it is told to stop.

One task walks the queue, one renews leases, one tells the store how pools stand. On a stop nothing more is claimed,
what is being sent gets the grace time, what was not begun is handed back, and every result is recorded before it ends,
unless the store is away for longer than that.
"""

import asyncio
import itertools
import random
import secrets
from typing import Final

from postroad.delivery import (
    dispatching,
    hosts,
    leases,
    permits,
    pool,
    preparing,
    recording,
    reporting,
    routing,
    trying,
)
from postroad.network import resolver, smtp_connection, this_host
from postroad.services import context, signing, walking
from postroad.storage import group_commit
from postroad.telemetry import logs

# After a round in which nothing could be taken, this many times as long as it took: a long list of blocked lanes does
# not become a busy loop.
REST: Final = 4
TROUBLE_SECONDS: Final = 1.0


class Engine:
    """Delivery in one process."""

    def __init__(self, ctx: context.Context, *, hello_name: str, log: logs.Logger) -> None:
        settings = ctx.settings.delivery
        loop = asyncio.get_running_loop()
        self._ctx = ctx
        self._log = log
        self._hello_name = hello_name
        self._timeouts = smtp_connection.Timeouts(
            connect=settings.connect_seconds, reply=settings.reply_seconds, content=settings.content_seconds
        )
        self._sources = itertools.cycle(settings.source_addresses or (None,))
        self._hosts = hosts.Hosts(loop.time)
        self._router = routing.Router(
            settings,
            resolver.Resolver(settings.resolvers),
            clock=loop.time,
            shuffle=random.shuffle,
            own_names=(hello_name,),
            log=log,
        )
        self._signing = signing.Signing(ctx) if settings.sign else None
        worker = f"{this_host.process_name()}:{secrets.token_hex(4)}"
        self._held = leases.Leases(ctx.store, worker=worker, seconds=settings.lease_seconds, clock=ctx.clock, log=log)
        self._recording = recording.Recording(ctx, self._held, log)
        tools = pool.Tools(
            ctx=ctx,
            held=self._held,
            preparing=preparing.Preparing(ctx, self._signing, log),
            trying=trying.Trying(self._hosts, self._connect),
            recording=self._recording,
            permits=permits.Permits(settings.connections),
            log=log,
            clock=loop.time,
            wake=ctx.arrivals.set,
        )
        self._dispatching = dispatching.Dispatching(ctx, self._router, self._hosts, tools)
        self._reporting = reporting.Reporting(ctx, self._dispatching, self._hosts, self._held, log)
        self._is_stopping = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Deliver until told to stop; then finish in order."""
        walk = asyncio.create_task(self._walk())
        renewals = asyncio.create_task(self._held.renew_forever())
        reports = asyncio.create_task(self._reporting.run_forever())
        stop = asyncio.create_task(stopping.wait())
        try:
            done, _ = await asyncio.wait([walk, renewals, reports, stop], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # one that ended by itself ended by a bug, which is for the role to tell
        finally:
            grace = walking.Grace(self._ctx.settings.delivery.grace_seconds)
            self._is_stopping = True
            self._ctx.arrivals.set()
            await walking.end(walk, grace)
            await walking.cancel(stop)
            await walking.cancel(reports)
            try:
                await self._stop(grace)
            finally:
                await walking.cancel(renewals)

    async def _walk(self) -> None:
        """Take work again and again. A store that is away is asked again a little later."""
        loop = asyncio.get_running_loop()
        while not self._is_stopping:
            began = loop.time()
            try:
                while await self._dispatching.step() and not self._is_stopping:
                    await asyncio.sleep(walking.CLAIM_SECONDS)
                    if self._dispatching.is_round_over:
                        began = loop.time()
            except group_commit.TROUBLE as trouble:
                self._log.warning("queue_not_reached", error=trouble.message)
                await asyncio.sleep(TROUBLE_SECONDS)
                continue
            await walking.rest(REST * (loop.time() - began))
            await walking.wait(self._ctx.arrivals, milliseconds=self._ctx.settings.delivery.poll_milliseconds)

    async def _stop(self, grace: walking.Grace) -> None:
        stop = asyncio.create_task(self._dispatching.stop())
        await asyncio.wait([stop], timeout=grace.left)
        if not stop.done():
            self._log.warning("grace_time_over", recipients=len(self._held))
            for one in self._dispatching.pools.values():
                one.cut()
            self._recording.let_through()
        await stop
        await self._recording.close(seconds=grace.left_for_recording)
        await self._reporting.close()
        await self._router.close()
        if self._signing is not None:
            await self._signing.close()

    async def _connect(self, host: routing.Host) -> smtp_connection.SmtpConnection:
        destination = smtp_connection.Destination(
            host=host.name, address=host.address, port=host.port, tls=host.tls, source_address=self._source(host)
        )
        return await smtp_connection.connect(destination, hello_name=self._hello_name, timeouts=self._timeouts)

    def _source(self, host: routing.Host) -> str | None:
        """The next of our addresses that has the family of the destination."""
        for _ in range(max(1, len(self._ctx.settings.delivery.source_addresses))):
            source = next(self._sources)
            if source is None or (":" in source) == (":" in host.address):
                return source
        return None


async def open_engine(ctx: context.Context, *, log: logs.Logger) -> Engine:
    """An engine that is ready to run."""
    return Engine(ctx, hello_name=ctx.settings.delivery.hostname or await this_host.name(), log=log)
