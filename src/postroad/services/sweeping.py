"""Sweeping: what has expired is forgotten, a bounded number of rows at a time, so that mail never waits for it long."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from postroad.services import context
from postroad.storage import idempotency, pools, store, users

# A bound for one sweep: ten million rows. What is left over goes with the next one.
MOST_BATCHES: Final = 10_000
# A worker repeats what it says of its pools twice a minute; what is older is of one that died.
POOL_MICROSECONDS: Final = 10 * 60 * 1_000_000


@dataclass(frozen=True, slots=True)
class Swept:
    """How many rows a sweep removed."""

    idempotency_keys: int
    tokens: int
    pools: int


async def sweep(ctx: context.Context) -> Swept:
    """Forget expired idempotency keys, taken-back tokens that would have expired by now, and what dead workers said."""
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        forgotten = await pools.sweep(tx, before=now - POOL_MICROSECONDS)
    return Swept(
        idempotency_keys=await _in_batches(ctx, lambda tx: idempotency.sweep(tx, now=now), rows=idempotency.SWEEP_ROWS),
        tokens=await _in_batches(ctx, lambda tx: users.sweep_tokens(tx, now=now), rows=users.SWEEP_ROWS),
        pools=forgotten,
    )


async def _in_batches(ctx: context.Context, work: Callable[[store.Transaction], Awaitable[int]], *, rows: int) -> int:
    """Each batch is a transaction of its own, and whoever waits for the store comes in between."""
    total = 0
    for _ in range(MOST_BATCHES):
        async with ctx.store.transaction() as tx:
            removed = await work(tx)
        total += removed
        if removed < rows:
            break
    return total
