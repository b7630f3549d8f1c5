"""Sweeping: what has expired is forgotten, a bounded number of rows at a time, so that mail never waits for it long."""

import dataclasses
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from postroad.model import cursors, identifiers, throttle, times
from postroad.services import accounts, context, retaining, webhook_log
from postroad.storage import (
    idempotency,
    journal,
    password_links,
    pools,
    rates,
    sending_days,
    store,
    traffic,
    users,
    webhook_deliveries,
    webhooks,
)

# A bound for one sweep: ten million rows. What is left over goes with the next one.
MOST_BATCHES: Final = 10_000
# A worker repeats what it says of its pools twice a minute; what is older is of one that died.
POOL_MICROSECONDS: Final = 10 * 60 * times.SECOND
# The longest period of charts and the one before it are 60 days, today's included.
TRAFFIC_HOURS: Final = 62 * 24
# Endpoints that were removed, for one sweep: each is a transaction or more.
MOST_REMOVED: Final = 1_000


@dataclass(frozen=True, slots=True)
class Swept:
    """How many rows a sweep removed, and the accounts that may send again."""

    idempotency_keys: int
    tokens: int
    pools: int
    webhook_deliveries: int
    webhook_secrets: int
    rates: int
    sending_days: int = 0
    traffic_hours: int = 0
    journal: int = 0
    password_links: int = 0
    bodies: int = 0
    messages: int = 0
    # There is old mail that this sweep had no time for.
    has_more: bool = False
    resumed: tuple[str, ...] = ()


async def sweep(ctx: context.Context) -> Swept:
    """Forget all that has expired; let those send again who have been suspended long enough."""
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        forgotten = await pools.sweep(tx, before=now - POOL_MICROSECONDS)
        secrets = await webhooks.sweep_secrets(tx, now=now)
    swept = Swept(
        resumed=tuple(await accounts.cool_down(ctx)),
        idempotency_keys=await _in_batches(ctx, lambda tx: idempotency.sweep(tx, now=now), rows=idempotency.SWEEP_ROWS),
        tokens=await _in_batches(ctx, lambda tx: users.sweep_tokens(tx, now=now), rows=users.SWEEP_ROWS),
        pools=forgotten,
        webhook_deliveries=await _sweep_log(ctx, before=now - webhook_log.LOG_SECONDS * times.SECOND),
        webhook_secrets=secrets,
        rates=await _in_batches(
            ctx, lambda tx: rates.sweep(tx, before=now - throttle.MOST_CLOCK_DIFFERENCE), rows=rates.SWEEP_ROWS
        ),
        sending_days=await _in_batches(ctx, functools.partial(_sweep_days, ctx), rows=sending_days.SWEEP_ROWS),
        traffic_hours=await _in_batches(
            ctx, lambda tx: traffic.sweep(tx, until_hour=traffic.hour_of(now) - TRAFFIC_HOURS), rows=traffic.SWEEP_ROWS
        ),
        journal=await _in_batches(
            ctx,
            lambda tx: journal.sweep(tx, before=now - ctx.settings.dashboard.journal_days * times.DAY),
            rows=journal.SWEEP_ROWS,
        ),
        password_links=await _in_batches(
            ctx, lambda tx: password_links.sweep(tx, now=now), rows=password_links.SWEEP_ROWS
        ),
    )
    # The longest work comes last, after the keys that stand for messages. Bodies go before the rest of their messages.
    bodies = await retaining.remove_bodies(ctx, now=now)
    mail = await retaining.remove_messages(ctx, now=now)
    has_more = bodies.has_more or mail.has_more
    return dataclasses.replace(swept, bodies=bodies.count, messages=mail.count, has_more=has_more)


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


async def _sweep_days(ctx: context.Context, tx: store.Transaction) -> int:
    """Days that the bounce guard does not look at any more."""
    today = times.day_of(ctx.clock())
    return await sending_days.sweep(tx, until_day=today - ctx.settings.bounce_guard.days)


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
