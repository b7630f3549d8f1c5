"""Sweeping: what has expired is forgotten, a bounded number of rows at a time, so that mail never waits for it long."""

import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from postroad.model import cursors, identifiers, times
from postroad.services import context, webhook_log
from postroad.storage import idempotency, pools, store, users, webhook_deliveries, webhooks

# A bound for one sweep: ten million rows. What is left over goes with the next one.
MOST_BATCHES: Final = 10_000
# A worker repeats what it says of its pools twice a minute; what is older is of one that died.
POOL_MICROSECONDS: Final = 10 * 60 * times.SECOND
# Endpoints that were removed, for one sweep: each is a transaction or more.
MOST_REMOVED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Swept:
    """How many rows a sweep removed."""

    idempotency_keys: int
    tokens: int
    pools: int
    webhook_deliveries: int
    webhook_secrets: int


async def sweep(ctx: context.Context) -> Swept:
    """Forget all that has expired: keys, taken-back tokens, what dead workers said, old secrets and webhook logs."""
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        forgotten = await pools.sweep(tx, before=now - POOL_MICROSECONDS)
        secrets = await webhooks.sweep_secrets(tx, now=now)
    return Swept(
        idempotency_keys=await _in_batches(ctx, lambda tx: idempotency.sweep(tx, now=now), rows=idempotency.SWEEP_ROWS),
        tokens=await _in_batches(ctx, lambda tx: users.sweep_tokens(tx, now=now), rows=users.SWEEP_ROWS),
        pools=forgotten,
        webhook_deliveries=await _sweep_log(ctx, before=now - webhook_log.LOG_SECONDS * times.SECOND),
        webhook_secrets=secrets,
    )


async def _sweep_log(ctx: context.Context, *, before: int) -> int:
    """Deliveries that ended, those that could not be told in all the time, and all of removed endpoints.

    The schedule takes a day. What is left after a week waits for an endpoint that is disabled, or behind more than its
    receiver will ever take.
    """
    rows = webhook_deliveries.SWEEP_ROWS
    place = cursors.at(identifiers.WEBHOOK_DELIVERY, before)
    ended = await _in_batches(ctx, lambda tx: webhook_deliveries.sweep(tx, ended_before=before), rows=rows)
    untold = await _in_batches(ctx, lambda tx: webhook_deliveries.sweep_untold(tx, created_before=place), rows=rows)
    async with ctx.store.reading() as tx:
        gone = await webhooks.removed(tx, most=MOST_REMOVED)
    removed = [await _in_batches(ctx, functools.partial(_sweep_removed, endpoint), rows=rows) for endpoint in gone]
    return ended + untold + sum(removed)


async def _sweep_removed(endpoint: webhooks.Removed, tx: store.Transaction) -> int:
    removed = await webhook_deliveries.sweep_removed(tx, endpoint.account_id, endpoint.id)
    if removed < webhook_deliveries.SWEEP_ROWS:
        await webhooks.forget(tx, endpoint.id)
    return removed


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
