"""A process reports its roles while it runs, and removes itself when it stops."""

import asyncio
import json

from postroad import build_version
from postroad.roles import background, composition, role
from postroad.storage.operations import processes
from tests import contexts
from tests.api import app_server

TIMEOUT_SECONDS = 600


async def test_a_process_is_in_the_store_while_it_runs(clean_sqlite_url: str) -> None:
    clock = contexts.Clock()
    dead = processes.Process("old:1", "old", 1, ("api",), "0.1.0", 5, 5)

    async def no_metrics() -> bytes:
        return b""

    async with composition.open_context(contexts.load(clean_sqlite_url), clock=clock) as ctx:

        async def seen() -> list[processes.Process]:
            async with ctx.store.reading() as tx:
                return list(await processes.seen_since(tx, 0))

        async with ctx.store.transaction() as tx:
            await processes.put(tx, dead)
        stopping = asyncio.Event()
        given = role.RoleContext(ctx, app_server.CapturedLog().logger(), stopping, no_metrics)
        started = await background.start_heartbeat(given, names=["delivery", "webhooks"])
        working = asyncio.ensure_future(started.work())
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while (found := await seen()) == [dead]:
                await asyncio.sleep(0.01)
        (own,) = found
        assert (own.roles, own.started_at, own.seen_at) == (("delivery", "webhooks"), clock.now, clock.now)
        assert json.loads(own.rates) == dict.fromkeys(
            ["accepted", "delivered", "bounced", "failed", "expired", "canceled", "deferred"], 0.0
        )
        assert own.name == f"{own.host}:{own.process_id}"
        async with ctx.store.reading() as tx:
            assert await processes.last_version(tx) == build_version.current()
        stopping.set()
        await working
        assert await seen() == []
