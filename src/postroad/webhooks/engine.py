"""The webhook engine of one process: builds its parts and runs them until it is stopped.

One task walks through due deliveries; each attempt is a task of its own. On a stop nothing more is claimed, attempts
under way get the grace period, those that need longer are recorded as interrupted, and every result is recorded, unless
the database is unavailable for longer than the grace period.
"""

import asyncio
import secrets
from typing import Final

from postroad.concurrency import poll_loop
from postroad.model import webhook_concurrency
from postroad.network import hostname
from postroad.services import context
from postroad.storage import store
from postroad.telemetry import logs
from postroad.webhooks import attempter, dispatcher, recorder

ERROR_BACKOFF_SECONDS: Final = 1.0


class Engine:
    """Webhooks in one process."""

    def __init__(self, ctx: context.Context, *, log: logs.Logger) -> None:
        settings = ctx.settings.webhooks
        clock = asyncio.get_running_loop().time
        worker = f"{hostname.process_name()}:{secrets.token_hex(4)}"
        slots = webhook_concurrency.ConcurrencyBudget(
            slots=settings.connections, per_account=settings.connections_per_account
        )
        self._ctx = ctx
        self._log = log
        self._recorder = recorder.Recorder(ctx, worker=worker, wake=ctx.webhook_wakeup.set, log=log)
        self._attempter = attempter.Attempter(
            ctx, slots, self._recorder, clock=clock, wake=ctx.webhook_wakeup.set, log=log
        )
        self._dispatcher = dispatcher.Dispatcher(
            ctx, slots, self._attempter, self._recorder, worker=worker, clock=clock, log=log
        )
        self._is_stopping = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Deliver until stopped; then finish in order."""
        walk = asyncio.create_task(self._run())
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([walk, stop], return_when=asyncio.FIRST_COMPLETED)
            if walk.done():
                walk.result()  # it has a bug, which the role reports
        finally:
            grace = poll_loop.GracePeriod(self._ctx.settings.webhooks.grace_seconds)
            self._is_stopping = True
            self._dispatcher.stop()
            self._ctx.webhook_wakeup.set()
            await poll_loop.stop(walk, grace)
            await poll_loop.cancel(stop)
            await self._attempter.finish(grace_seconds=grace.remaining)
            await self._recorder.close(seconds=grace.remaining_for_recording)

    async def _run(self) -> None:
        """Claim work in a loop. After a database outage, retry a little later."""
        while not self._is_stopping:
            try:
                rest = await self._dispatcher.step()
            except store.UNAVAILABLE as error:
                self._log.warning("webhook_queue_unavailable", error=error.message)
                await asyncio.sleep(ERROR_BACKOFF_SECONDS)
                continue
            await poll_loop.pause(rest or 0.0)
            if rest is not None:
                await poll_loop.wait_for_work(
                    self._ctx.webhook_wakeup, milliseconds=self._ctx.settings.webhooks.poll_milliseconds
                )
