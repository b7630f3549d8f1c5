"""Long database work in small transactions.

Each is followed by a pause of the same duration, so that mail keeps at least half of the database's capacity.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from postroad import context
from postroad.storage.engine import store

Result = TypeVar("Result")
# A transaction that took longer was waiting for another one.
MAX_PAUSE_SECONDS: Final = 1.0


async def run_batch(ctx: context.Context, work: Callable[[store.Transaction], Awaitable[Result]]) -> Result:
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with ctx.store.transaction() as tx:
        result = await work(tx)
    await asyncio.sleep(min(loop.time() - began, MAX_PAUSE_SECONDS))
    return result
