"""The delivery engine of one process: builds its parts and runs them until it is stopped.

One task walks the queue, one renews leases, one reports the status of provider queues, one stores TLS results. On a
stop nothing more is claimed, deliveries under way get the grace period, jobs that were not begun are released, and
every result is recorded, unless the database is unavailable for longer than the grace period.
"""

import asyncio
import random
import secrets
from typing import Final

from postroad import context
from postroad.concurrency import poll_loop
from postroad.delivery import (
    attempter,
    controls,
    dispatcher,
    permits,
    provider_queue,
    recorder,
    routing,
    tls_choice,
    tls_results,
)
from postroad.mail.signing import signer_pool
from postroad.model.units import times
from postroad.network import hostname
from postroad.network.dns import resolver
from postroad.network.smtp import smtp_connection
from postroad.storage.engine import store
from postroad.telemetry import logs

# After a round, pause this many times its duration: under load a claim takes many, and a long list of blocked scheduled
# queues does not become a busy loop.
PAUSE_FACTOR: Final = 4
ERROR_BACKOFF_SECONDS: Final = 1.0


class Engine:
    """Delivery in one process."""

    def __init__(self, ctx: context.Context, *, hello_name: str, log: logs.Logger) -> None:
        settings, lease_seconds = ctx.settings.delivery, ctx.settings.testing.lease_seconds
        loop = asyncio.get_running_loop()
        self._ctx = ctx
        self._log = log
        self._connector = attempter.Connector(ctx.settings, hello_name=hello_name)
        self._hosts = routing.Hosts(loop.time)
        self._tls_results = tls_results.TlsResults(ctx, log)
        self._router = routing.Router(
            settings,
            resolver.Resolver(settings.resolvers),
            clock=loop.time,
            shuffle=random.shuffle,
            own_names=(hello_name,),
            upstreams=ctx.settings.upstreams,
            sources=ctx.settings.sources,
            stored_policies=tls_choice.StoredPolicies(ctx.store, ctx.clock),
            report=self._tls_results.add if ctx.settings.tls_reports.sender else None,
            log=log,
        )
        self._signing = signer_pool.DkimSigner(ctx) if ctx.settings.testing.sign else None
        worker = f"{hostname.process_name()}:{secrets.token_hex(4)}"
        self._leases = recorder.Leases(ctx.store, worker=worker, seconds=lease_seconds, clock=ctx.clock, log=log)
        sources = controls.SourceTable(ctx, self._leases, loop.time)
        self._recorder = recorder.Recorder(ctx, self._leases, sources, log)
        trusted = times.LeaseClock(lease_seconds * times.SECOND)
        services = provider_queue.DeliveryServices(
            ctx=ctx,
            leases=self._leases,
            holds=controls.HoldCache(ctx, loop.time),
            sources=sources,
            message_loader=attempter.MessageLoader(ctx, self._signing, log),
            attempter=attempter.Attempter(self._hosts, self._connect, setting=tls_choice.BY_SETTING[settings.tls]),
            recorder=self._recorder,
            permits=permits.Permits(settings.connections),
            log=log,
            clock=loop.time,
            trusted_clock=lambda: trusted.expired_before(now=ctx.clock(), monotonic=loop.time()),
            wake=ctx.mail_wakeup.set,
        )
        self._dispatcher = dispatcher.Dispatcher(ctx, self._router, self._hosts, services)
        self._status_reporter = provider_queue.StatusReporter(
            ctx, self._dispatcher.provider_queues, self._hosts, self._leases, log
        )
        self._is_stopping = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Deliver until stopped; then finish in order."""
        walk = asyncio.create_task(self._run())
        renewals = asyncio.create_task(self._leases.renew_forever())
        reports = asyncio.create_task(self._status_reporter.run_forever())
        counts = asyncio.create_task(self._tls_results.run_forever())
        stop = asyncio.create_task(stopping.wait())
        try:
            done, _ = await asyncio.wait([walk, renewals, reports, counts, stop], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()  # a task that ended by itself has a bug, which the role reports
        finally:
            grace = poll_loop.GracePeriod(self._ctx.settings.shutdown.grace_seconds)
            self._is_stopping = True
            self._ctx.mail_wakeup.set()
            await poll_loop.stop(walk, grace)
            await poll_loop.cancel(stop)
            await poll_loop.cancel(reports)
            await poll_loop.cancel(counts)
            try:
                await self._stop(grace)
            finally:
                await poll_loop.cancel(renewals)

    async def _run(self) -> None:
        """Claim work in a loop. After a database outage, retry a little later."""
        loop = asyncio.get_running_loop()
        while not self._is_stopping:
            began, max_pause = loop.time(), poll_loop.MAX_PAUSE_SECONDS
            try:
                while await self._dispatcher.step() and not self._is_stopping:
                    if self._dispatcher.has_claimed_all:
                        max_pause = poll_loop.MIN_PAUSE_SECONDS
                        break
                    await asyncio.sleep(poll_loop.MIN_PAUSE_SECONDS)
                    if self._dispatcher.is_round_over:
                        began = loop.time()
            except store.UNAVAILABLE as error:
                self._log.warning("queue_unavailable", error=error.message)
                await asyncio.sleep(ERROR_BACKOFF_SECONDS)
                continue
            await asyncio.sleep(min(PAUSE_FACTOR * (loop.time() - began), max_pause))
            await poll_loop.wait_for_work(
                self._ctx.mail_wakeup, milliseconds=self._ctx.settings.testing.poll_milliseconds
            )

    async def _stop(self, grace: poll_loop.GracePeriod) -> None:
        stop = asyncio.create_task(self._dispatcher.stop())
        await asyncio.wait([stop], timeout=grace.remaining)
        if not stop.done():
            self._log.warning("grace_period_exceeded", recipients=len(self._leases))
            for route_queue in self._dispatcher.provider_queues.by_name.values():
                route_queue.abort()
            self._recorder.lift_limit()
        await stop
        await self._recorder.close(seconds=grace.remaining_for_recording)
        await self._status_reporter.close()
        await self._tls_results.flush()
        await self._router.close()
        if self._signing is not None:
            await self._signing.close()

    async def _connect(self, host: routing.Host) -> smtp_connection.SmtpConnection:
        try:
            connection = await self._connector.connect(host)
        except smtp_connection.ConnectFailed as problem:
            self._tls_results.failed(host, problem)
            raise
        self._tls_results.connected(host, connection)
        return connection


async def open_engine(ctx: context.Context, *, log: logs.Logger) -> Engine:
    return Engine(ctx, hello_name=ctx.settings.delivery.hostname or await hostname.name(), log=log)
