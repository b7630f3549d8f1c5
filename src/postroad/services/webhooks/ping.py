"""Ping: a test event to an endpoint, sent once while the caller waits.

Every response is a result and goes into the log. No transaction is open during the request. Pings have a minimum
interval over all hosts, because a caller can trigger requests to other hosts with them.
"""

import math
from typing import Final

from postroad import errors
from postroad.model import events, identifiers, times, webhook_formats
from postroad.services import audit_log, context
from postroad.services.webhooks import attempt as webhook_attempt
from postroad.services.webhooks import delivery_log, endpoints, signing_secrets
from postroad.storage import webhook_attempts, webhook_deliveries
from postroad.storage import webhooks as stored

MIN_PING_INTERVAL_SECONDS: Final = 15


async def ping(ctx: context.Context, account_id: str, webhook_id: str | None = None) -> delivery_log.Entry:
    """Send a test event once, whether the endpoint is enabled or not; the result is logged."""
    webhook, secrets, now = await _begin(ctx, account_id, webhook_id)
    event_id = ctx.new_id(identifiers.EVENT, now=now)
    body = webhook_formats.ping(webhook.format, event_id, created_at=now)
    attempted = await webhook_attempt.attempt(ctx, webhook, event_id=event_id, secrets=secrets, body=body)
    delivery = webhook_deliveries.Delivery(
        account_id=account_id,
        webhook_id=webhook.id,
        id=ctx.new_id(identifiers.WEBHOOK_DELIVERY, now=now),
        event_id=event_id,
        event_type=events.EventType.TEST,
        message_id=None,
        recipient_id=None,
        url=webhook.url,
        body=body,
        state=webhook_deliveries.State.SUCCEEDED if attempted.response.succeeded else webhook_deliveries.State.FAILED,
        attempt_count=1,
        due_at=now,
        created_at=now,
        ended_at=ctx.clock(),
    )
    attempt = webhook_attempt.attempt_row(delivery.key, 1, attempted)
    await _store(ctx, delivery, attempt)
    return delivery_log.Entry(delivery, [attempt], next_attempt_at=None)


async def _begin(
    ctx: context.Context, account_id: str, webhook_id: str | None
) -> tuple[stored.Webhook, list[str], int]:
    """The endpoint, its secrets and the start time; refused when the last ping was a moment ago, on any host."""
    async with ctx.store.transaction() as tx:
        webhook = await endpoints.lock(tx, account_id, webhook_id)
        if webhook.is_listener:
            raise errors.Conflict("this webhook has no URL: its events are fetched; send a message to get one")
        now = ctx.clock()
        if not await stored.mark_pinged(tx, webhook, now=now, not_since=now - MIN_PING_INTERVAL_SECONDS * times.SECOND):
            left = MIN_PING_INTERVAL_SECONDS + ((await stored.pinged_at(tx, webhook) or now) - now) / times.SECOND
            raise errors.RateLimited(
                f"a ping was sent a moment ago; wait {MIN_PING_INTERVAL_SECONDS} seconds between pings",
                retry_after=max(1, math.ceil(left)),
            )
        sealed = await stored.secrets(tx, [webhook.id], now=now)
        await audit_log.write(ctx, tx, account_id, "webhook.pinged", endpoints.host(webhook.url))
    return webhook, [signing_secrets.decrypt(ctx, secret) for secret in sealed], now


async def _store(
    ctx: context.Context, delivery: webhook_deliveries.Delivery, attempt: webhook_attempts.Attempt
) -> None:
    async with ctx.store.transaction() as tx:
        # An endpoint removed during the request has no log any more.
        if await endpoints.find_locked(tx, delivery.account_id, delivery.webhook_id) is not None:
            await webhook_deliveries.insert(tx, [delivery])
            await webhook_attempts.insert(tx, [attempt])
