"""Long work on the store, in small transactions.

After each one the store is left alone for as long as it took, so that mail keeps at least half of it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from postroad.services import context
from postroad.storage import store

Result = TypeVar("Result")
# A transaction that took longer has waited for somebody else's.
MAX_PAUSE_SECONDS: Final = 1.0


async def run_batch(ctx: context.Context, work: Callable[[store.Transaction], Awaitable[Result]]) -> Result:
    """One transaction of many, and the rest after it."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with ctx.store.transaction() as tx:
        result = await work(tx)
    await asyncio.sleep(min(loop.time() - began, MAX_PAUSE_SECONDS))
    return result
