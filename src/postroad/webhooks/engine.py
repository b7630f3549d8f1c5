"""The webhook engine of one process: builds its parts, and runs them until it is told to stop.

One task walks through what is to be told; each attempt is a task of its own. On a stop nothing more is claimed, what is
under way gets the grace time, what needs longer is recorded as interrupted, and no result is left when it ends, unless
the store is away for longer than that.
"""

import asyncio
import contextlib
import secrets
from typing import Final

from postroad.model import shares
from postroad.network import this_host
from postroad.services import context
from postroad.storage import group_commit
from postroad.telemetry import logs
from postroad.webhooks import attempting, dispatching, recording

# Between two claims, so that under load each takes many: a transaction costs the same for one row as for a hundred.
CLAIM_SECONDS: Final = 0.005
LONGEST_REST_SECONDS: Final = 1.0
TROUBLE_SECONDS: Final = 1.0
# Recording gets what is left of the grace time, but at least this: a store that works needs a few milliseconds.
RECORDING_SECONDS: Final = 2.0
MILLISECONDS: Final = 1_000


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
            stop_by = asyncio.get_running_loop().time() + self._ctx.settings.webhooks.grace_seconds
            await self._end_walk(walk, stop_by)
            await self._cancel(stop)
            await self._attempting.finish(grace_seconds=self._left(stop_by))
            await self._recording.close(seconds=max(RECORDING_SECONDS, self._left(stop_by)))

    async def _end_walk(self, walk: asyncio.Task[None], stop_by: float) -> None:
        """Let the step under way end: what it has just claimed would else wait for the end of its lease."""
        self._is_stopping = True
        self._dispatching.stop()
        self._ctx.tidings.set()
        await asyncio.wait([walk], timeout=self._left(stop_by))
        await self._cancel(walk)

    async def _walk(self) -> None:
        """Take work again and again. A store that is away is asked again a little later."""
        while not self._is_stopping:
            try:
                rest = await self._dispatching.step()
            except group_commit.TROUBLE as trouble:
                self._log.warning("webhooks_not_reached", error=trouble.message)
                await asyncio.sleep(TROUBLE_SECONDS)
                continue
            await asyncio.sleep(max(CLAIM_SECONDS, min(rest or 0.0, LONGEST_REST_SECONDS)))
            if rest is None:
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._ctx.settings.webhooks.poll_milliseconds / MILLISECONDS):
                    await self._ctx.tidings.wait()
            self._ctx.tidings.clear()

    @staticmethod
    def _left(stop_by: float) -> float:
        """How many seconds there are until then."""
        return max(0.0, stop_by - asyncio.get_running_loop().time())

    @staticmethod
    async def _cancel(task: asyncio.Task[object]) -> None:
        task.cancel()
        await asyncio.wait([task])
