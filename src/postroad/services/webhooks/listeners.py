"""Listeners: webhook endpoints without a URL, whose events a program fetches (`postroad webhook listen`).

A listener is an endpoint like any other, except that the engine does not deliver to it: its deliveries stay ready until
the program acknowledges them, which deletes them. What was fetched and not acknowledged is returned again, so a broken
connection loses nothing. A listener that nobody asks for its events is removed after `EXPIRY`.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import context
from postroad.model.units import identifiers, times
from postroad.services import audit_log, usage_limits
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.storage.mail import webhooks
from postroad.storage.people import accounts

DESCRIPTION: Final = "postroad webhook listen"
# A request that waits holds a connection. It ends soon, so that a stopping service need not wait for it.
MAX_WAIT_SECONDS: Final = 5
POLL_SECONDS: Final = 0.5
MAX_EVENTS: Final = 100
WAITING: Final = usage_limits.WorkLimit("webhook listeners", per_account=5, per_process=100, retry_seconds=5)
# Longer than a laptop needs to find its network again; what happens meanwhile is kept for it.
EXPIRY: Final = 600 * times.SECOND
# How often a listener is written to because it is in use.
REFRESH: Final = 60 * times.SECOND


async def create(ctx: context.Context, account_id: str, changes: endpoint_settings.Changes) -> endpoints.SavedEndpoint:
    """Create a listener; expired ones of the account are removed."""
    checked = endpoint_settings.check(changes)
    checked = msgspec.structs.replace(checked, url=webhooks.LISTENER_URL, description=DESCRIPTION)
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        for other in await webhooks.of_account(tx, account_id):
            if is_expired(other, now=ctx.clock()):
                await webhooks.remove(tx, other.id, now=ctx.clock())
        return await endpoints.create_in(ctx, tx, account_id, checked)


async def receive(
    ctx: context.Context, account_id: str, webhook_id: str, *, acknowledged: Sequence[str], wait_seconds: float
) -> list[webhooks.Delivery]:
    """Delete what is acknowledged, and return the oldest events, for which it waits if there are none."""
    with usage_limits.acquire(ctx, WAITING, account_id):
        await _acknowledge(ctx, account_id, webhook_id, acknowledged)
        end = time.monotonic() + wait_seconds
        while True:
            async with ctx.store.reading() as tx:
                found = await webhooks.ready(tx, account_id, webhook_id, limit=MAX_EVENTS)
            if found or time.monotonic() >= end:
                return found
            await asyncio.sleep(POLL_SECONDS)


async def expire(ctx: context.Context, listener: webhooks.Webhook) -> None:
    """Remove a listener, unless it was used in the meantime."""
    async with ctx.store.transaction() as tx:
        found = await endpoints.find_locked(tx, listener.account_id, listener.id)
        if found is not None and is_expired(found, now=ctx.clock()):
            await webhooks.remove(tx, found.id, now=ctx.clock())
            await audit_log.write(ctx, tx, found.account_id, "webhook.removed", endpoints.host(found.url))


def is_expired(webhook: webhooks.Webhook, *, now: int) -> bool:
    """Whether this is a listener that nobody has asked for its events for a while."""
    return webhook.is_listener and webhook.updated_at < now - EXPIRY


async def _acknowledge(ctx: context.Context, account_id: str, webhook_id: str, acknowledged: Sequence[str]) -> None:
    listener = await endpoints.get(ctx, account_id, webhook_id)
    if not listener.is_listener:
        raise endpoints.not_found()
    now = ctx.clock()
    if not acknowledged and abs(now - listener.updated_at) < REFRESH:
        return
    async with ctx.store.transaction() as tx:
        current = await endpoints.lock(tx, account_id, webhook_id)
        known = {
            delivery_id
            for delivery_id in acknowledged
            if identifiers.is_identifier(delivery_id, identifiers.WEBHOOK_DELIVERY)
        }
        await webhooks.acknowledge(tx, account_id, webhook_id, sorted(known))
        await webhooks.update(tx, msgspec.structs.replace(current, updated_at=now))
