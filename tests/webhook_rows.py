"""Webhooks for tests of services and listeners: settings that allow them, and rows as outbox and engine leave them."""

from typing import Any

from postroad import config, context
from postroad.model.events import events
from postroad.model.units import identifiers
from postroad.storage.mail import webhooks
from tests import contexts

State = webhooks.State
# What tests call public, by `webhooks.allow_private`.
PUBLIC = ["127.0.0.2/32"]
URL = "https://127.0.0.2/hook"
MESSAGE_ID = "em_" + "1" * 28


def settings(database_url: str, **changes: Any) -> config.Settings:
    """Settings with which `URL` is an endpoint like any other; `changes` are more of the section `webhooks`."""
    return config.load(
        environment={},
        overrides={
            "database": {"url": database_url},
            "security": {"installation_key": contexts.SECRET_KEY},
            "webhooks": {"allow_private": PUBLIC, **changes},
        },
    )


async def put(ctx: context.Context, account_id: str, **changes: Any) -> webhooks.Delivery:
    """A delivery of the account's endpoint, ready unless told otherwise; `changes` replace its members."""
    now = ctx.clock()
    event_id = ctx.new_id(identifiers.EVENT, now=now)
    kind = events.EventType.DELIVERED
    async with ctx.store.transaction() as tx:
        webhook = await webhooks.first_of(tx, account_id)
        assert webhook is not None
        members: dict[str, Any] = {
            "account_id": account_id,
            "webhook_id": webhook.id,
            "id": ctx.new_id(identifiers.WEBHOOK_DELIVERY, now=now),
            "event_id": event_id,
            "event_type": kind,
            "message_id": MESSAGE_ID,
            "recipient_id": "rcp_" + "1" * 28,
            "url": webhook.url,
            "body": events.body(event_id, kind, created_at=now, data=events.Data(email_id=MESSAGE_ID, subject="é☃")),
            "due_at": now,
            "created_at": now,
        }
        delivery = webhooks.Delivery(**(members | changes))
        await webhooks.insert_deliveries(tx, [delivery])
    return delivery


async def put_ended(
    ctx: context.Context, account_id: str, state: webhooks.State = State.SUCCEEDED, **changes: Any
) -> webhooks.Delivery:
    """A delivery that has just ended, after one attempt."""
    now = ctx.clock()
    delivery = await put(ctx, account_id, state=state, attempt_count=1, ended_at=now, **changes)
    await put_attempt(ctx, delivery, 1, status_code=200 if state is State.SUCCEEDED else 500)
    return delivery


async def put_attempt(
    ctx: context.Context, delivery: webhooks.Delivery, number: int, **changes: Any
) -> webhooks.Attempt:
    """An attempt that was made just now."""
    members: dict[str, Any] = {
        "account_id": delivery.account_id,
        "webhook_id": delivery.webhook_id,
        "delivery_id": delivery.id,
        "number": number,
        "started_at": ctx.clock(),
        "duration": 12_345,
        "status_code": 200,
        "response_body": "thanks",
        "error": None,
    }
    attempt = webhooks.Attempt(**(members | changes))
    async with ctx.store.transaction() as tx:
        await webhooks.insert_attempts(tx, [attempt])
    return attempt
