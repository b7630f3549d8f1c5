"""Pinging: a test event to the account's receiver, sent once while the caller waits.

Whatever the receiver says is an answer, and goes into the log. No transaction is open while it is asked. Between two
pings some time has to pass, over all hosts: a ping is a request to elsewhere that a caller causes at will.
"""

import math
from typing import Final

from postroad import errors
from postroad.model import events, identifiers, times
from postroad.services import context, journal, telling, webhook_log, webhook_secrets, webhooks
from postroad.storage import webhook_attempts, webhook_deliveries
from postroad.storage import webhooks as stored

PING_SECONDS: Final = 15


async def ping(ctx: context.Context, account_id: str) -> webhook_log.Entry:
    """Send a test event, once and now, whether the endpoint is enabled or not; the log keeps what came of it."""
    webhook, secrets, now = await _begin(ctx, account_id)
    event_id = ctx.new_id(identifiers.EVENT, now=now)
    body = events.ping(event_id, created_at=now)
    attempted = await telling.attempt(ctx, url=webhook.url, secrets=secrets, body=body)
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
        state=webhook_deliveries.State.SUCCEEDED if attempted.answer.succeeded else webhook_deliveries.State.FAILED,
        attempt_count=1,
        due_at=now,
        created_at=now,
        ended_at=ctx.clock(),
    )
    attempt = telling.log_entry(delivery.key, 1, attempted)
    await _keep(ctx, delivery, attempt)
    return webhook_log.Entry(delivery, [attempt], next_attempt_at=None)


async def _begin(ctx: context.Context, account_id: str) -> tuple[stored.Webhook, list[str], int]:
    """Whom to ask, with which secrets, from when on; refused when the last ping was a moment ago, on whatever host."""
    async with ctx.store.transaction() as tx:
        webhook = await webhooks.hold(tx, account_id)
        now = ctx.clock()
        if not await stored.mark_pinged(tx, account_id, now=now, not_since=now - PING_SECONDS * times.SECOND):
            left = PING_SECONDS + ((await stored.pinged_at(tx, account_id) or now) - now) / times.SECOND
            raise errors.RateLimited(
                f"there was a ping a moment ago; wait {PING_SECONDS} seconds between them",
                retry_after=max(1, math.ceil(left)),
            )
        sealed = await stored.secrets(tx, [webhook.id], now=now)
        await journal.write(ctx, tx, account_id, "webhook.pinged", webhooks.host(webhook.url))
    return webhook, [webhook_secrets.unseal(ctx, secret) for secret in sealed], now


async def _keep(ctx: context.Context, delivery: webhook_deliveries.Delivery, attempt: webhook_attempts.Attempt) -> None:
    async with ctx.store.transaction() as tx:
        webhook = await webhooks.find_held(tx, delivery.account_id)
        # One that was removed while its receiver was asked has no log any more.
        if webhook is not None and webhook.id == delivery.webhook_id:
            await webhook_deliveries.insert(tx, [delivery])
            await webhook_attempts.insert(tx, [attempt])
