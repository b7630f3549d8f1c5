"""The webhook engine of one process: builds its parts, and runs them until it is told to stop.

One task walks through what is to be told; each attempt is a task of its own. On a stop nothing more is claimed, what is
under way gets the grace time, what needs longer is recorded as interrupted, and no result is left when it ends, unless
the store is away for longer than that.
"""

import asyncio
import secrets
from typing import Final

from postroad.concurrency import poll_loop
from postroad.model import webhook_concurrency
from postroad.network import hostname
from postroad.services import context
from postroad.storage import group_commit
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
        """Tell receivers until told to stop; then finish in order."""
        walk = asyncio.create_task(self._run())
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([walk, stop], return_when=asyncio.FIRST_COMPLETED)
            if walk.done():
                walk.result()  # it ended by a bug, which is for the role to tell
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
        """Take work again and again. A store that is away is asked again a little later."""
        while not self._is_stopping:
            try:
                rest = await self._dispatcher.step()
            except group_commit.TROUBLE as error:
                self._log.warning("webhooks_not_reached", error=error.message)
                await asyncio.sleep(ERROR_BACKOFF_SECONDS)
                continue
            await poll_loop.pause(rest or 0.0)
            if rest is not None:
                await poll_loop.wait_for_work(
                    self._ctx.webhook_wakeup, milliseconds=self._ctx.settings.webhooks.poll_milliseconds
                )
