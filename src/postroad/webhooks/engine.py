"""The webhook engine of one process: builds its parts, and runs them until it is told to stop.

One task walks through what is to be told; each attempt is a task of its own. On a stop nothing more is claimed, what is
under way gets the grace time, what needs longer is recorded as interrupted, and no result is left when it ends, unless
the store is away for longer than that.
"""

import asyncio
import secrets
from typing import Final

from postroad.model import shares
from postroad.network import this_host
from postroad.services import context, walking
from postroad.storage import group_commit
from postroad.telemetry import logs
from postroad.webhooks import attempting, dispatching, recording

TROUBLE_SECONDS: Final = 1.0


class Engine:
    """Webhooks in one process."""

    def __init__(self, ctx: context.Context, *, log: logs.Logger) -> None:
        settings = ctx.settings.webhooks
        clock = asyncio.get_running_loop().time
        worker = f"{this_host.process_name()}:{secrets.token_hex(4)}"
        places = shares.Shares(places=settings.connections, per_account=settings.connections_per_account)
        self._ctx = ctx
        self._log = log
        self._recording = recording.Recording(ctx, worker=worker, wake=ctx.tidings.set, log=log)
        self._attempting = attempting.Attempting(
            ctx, places, self._recording, clock=clock, wake=ctx.tidings.set, log=log
        )
        self._dispatching = dispatching.Dispatching(
            ctx, places, self._attempting, self._recording, worker=worker, clock=clock, log=log
        )
        self._is_stopping = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Tell receivers until told to stop; then finish in order."""
        walk = asyncio.create_task(self._walk())
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([walk, stop], return_when=asyncio.FIRST_COMPLETED)
            if walk.done():
                walk.result()  # it ended by a bug, which is for the role to tell
        finally:
            grace = walking.Grace(self._ctx.settings.webhooks.grace_seconds)
            self._is_stopping = True
            self._dispatching.stop()
            self._ctx.tidings.set()
            await walking.end(walk, grace)
            await walking.cancel(stop)
            await self._attempting.finish(grace_seconds=grace.left)
            await self._recording.close(seconds=grace.left_for_recording)

    async def _walk(self) -> None:
        """Take work again and again. A store that is away is asked again a little later."""
        while not self._is_stopping:
            try:
                rest = await self._dispatching.step()
            except group_commit.TROUBLE as trouble:
                self._log.warning("webhooks_not_reached", error=trouble.message)
                await asyncio.sleep(TROUBLE_SECONDS)
                continue
            await walking.rest(rest or 0.0)
            if rest is not None:
                await walking.wait(self._ctx.tidings, milliseconds=self._ctx.settings.webhooks.poll_milliseconds)
