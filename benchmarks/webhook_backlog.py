"""A backlog of events: written as the service writes them, before the service starts.

Each endpoint belongs to an account of its own. The events of all endpoints are mixed, oldest first, as they would be
when many accounts send at the same time.
"""

import asyncio
import pathlib
import typing

from postroad import config, context
from postroad.model.events import events
from postroad.model.units import identifiers
from postroad.roles import composition
from postroad.services.webhooks import signed_requests
from postroad.storage.mail import webhooks
from postroad.storage.people import accounts

# A commit for each would take minutes, one for all would take the memory.
ROWS_PER_TRANSACTION = 1000
REPLY = "2.0.0 OK 1799999999 af79cd13be357-7d09a1c2e4dsi1234567885a.123 - gsmtp"


class WebhookBacklog(typing.NamedTuple):
    """What was written: the endpoints' ids and their secrets, in order."""

    ids: tuple[str, ...]
    secrets: tuple[str, ...]


def write(
    configuration: pathlib.Path, *, urls: typing.Sequence[str], events_of: typing.Sequence[int]
) -> WebhookBacklog:
    """An endpoint for each URL, with so many events."""
    settings = config.load(configuration, environment={})
    return asyncio.run(_write(settings, urls=urls, events_of=events_of))


async def _write(
    settings: config.Settings, *, urls: typing.Sequence[str], events_of: typing.Sequence[int]
) -> WebhookBacklog:
    async with composition.open_context(settings) as ctx:
        made = [await _endpoint(ctx, url) for url in urls]
        endpoints = [endpoint for endpoint, _ in made]
        wanted = [
            endpoint
            for number in range(max(events_of))
            for endpoint, most in zip(endpoints, events_of, strict=True)
            if number < most
        ]
        for start in range(0, len(wanted), ROWS_PER_TRANSACTION):
            rows = [_delivery(ctx, endpoint) for endpoint in wanted[start : start + ROWS_PER_TRANSACTION]]
            async with ctx.store.transaction() as tx:
                await webhooks.insert_deliveries(tx, rows)
    return WebhookBacklog(tuple(endpoint.id for endpoint in endpoints), tuple(secret for _, secret in made))


async def _endpoint(ctx: context.Context, url: str) -> tuple[webhooks.Webhook, str]:
    now = ctx.clock()
    account_id = ctx.new_id(identifiers.ACCOUNT, now=now)
    secret = signed_requests.new_secret()
    hint = signed_requests.secret_hint(secret)
    webhook = webhooks.Webhook(
        id=ctx.new_id(identifiers.WEBHOOK, now=now),
        account_id=account_id,
        url=url,
        events=" ".join(events.SUBSCRIBABLE),
        enabled=1,
        secret_hint=hint,
        created_at=now,
        updated_at=now,
    )
    sealed = webhooks.Secret(
        account_id=account_id,
        webhook_id=webhook.id,
        version=1,
        secret=signed_requests.encrypt_secret(ctx, secret, webhook_id=webhook.id),
        created_at=now,
        expires_at=None,
    )
    async with ctx.store.transaction() as tx:
        await accounts.insert(tx, account_id, name=f"Benchmark {account_id}", now=now)
        await webhooks.insert(tx, webhook)
        await webhooks.add_secret(tx, sealed, hint=hint)
    return webhook, secret


def _delivery(ctx: context.Context, endpoint: webhooks.Webhook) -> webhooks.Delivery:
    now = ctx.clock()
    event_id = ctx.new_id(identifiers.EVENT, now=now)
    message_id = ctx.new_id(identifiers.MESSAGE, now=now)
    recipient_id = ctx.new_id(identifiers.RECIPIENT, now=now)
    data = events.recipient(
        email_id=message_id,
        recipient_id=recipient_id,
        to="jo.recipient@mailbox.example.org",
        sender=f"bounces+{message_id}-0123456789abcdef@example.com",
        subject="Your order 1234567 is on its way to you",
        smtp_code=250,
        response=REPLY,
    )
    return webhooks.Delivery(
        account_id=endpoint.account_id,
        webhook_id=endpoint.id,
        id=ctx.new_id(identifiers.WEBHOOK_DELIVERY, now=now),
        event_id=event_id,
        event_type=events.EventType.DELIVERED,
        message_id=message_id,
        recipient_id=recipient_id,
        url=endpoint.url,
        body=events.body(event_id, events.EventType.DELIVERED, created_at=now, data=data),
        due_at=now,
        created_at=now,
    )
