"""Webhook endpoints for tests of the outbox: put into the store as they are, and what was written for them."""

import json
from typing import Any, Final

import jsonschema_rs
import msgspec

from postroad import context
from postroad.model.events import events
from postroad.model.units import identifiers
from postroad.storage.mail import webhooks
from postroad.storage.people import accounts

URL: Final = "https://hooks.example.org/told"
ALL: Final = events.DEFAULT
# Above every id.
_LAST: Final = "whd_g"
_MAX: Final = 1_000


async def subscribe(
    ctx: context.Context, account_id: str, *kinds: str, enabled: bool = True, url: str = URL, **changes: Any
) -> webhooks.Webhook:
    """Make or change the account's endpoint, as `PUT /v1/webhook` does; without kinds it gets the contract's."""
    now = ctx.clock()
    subscribed = " ".join(kinds or ALL)
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        before = await webhooks.first_of(tx, account_id)
        webhook_id = before.id if before else ctx.new_id(identifiers.WEBHOOK, now=now)
        webhook = webhooks.Webhook(webhook_id, account_id, url, subscribed, int(enabled), "whsec_…", now, now)
        webhook = msgspec.structs.replace(webhook, **changes)
        if before:
            await webhooks.update(tx, webhook)
        else:
            await webhooks.insert(tx, webhook)
            secret = webhooks.Secret(account_id, webhook_id, 1, b"sealed", now, None)
            await webhooks.add_secret(tx, secret, hint=webhook.secret_hint)
    return webhook


async def subscribe_another(ctx: context.Context, account_id: str, **fields: Any) -> webhooks.Webhook:
    """Make one more endpoint of an account, subscribed to all events unless `fields` say otherwise."""
    now = ctx.clock()
    values: dict[str, Any] = {
        "url": URL,
        "events": " ".join(ALL),
        "enabled": 1,
        "secret_hint": "",
        "is_first": 0,
    } | fields
    webhook_id = ctx.new_id(identifiers.WEBHOOK, now=now)
    webhook = webhooks.Webhook(id=webhook_id, account_id=account_id, created_at=now, updated_at=now, **values)
    async with ctx.store.transaction() as tx:
        await webhooks.insert(tx, webhook)
        await webhooks.add_secret(tx, webhooks.Secret(account_id, webhook_id, 1, b"sealed", now, None), hint="")
    return webhook


async def unsubscribe(ctx: context.Context, webhook: webhooks.Webhook) -> None:
    """Remove an endpoint, as `DELETE /v1/webhook` does."""
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [webhook.account_id])
        await webhooks.remove(tx, webhook.id, now=ctx.clock())


async def deliveries_for(ctx: context.Context, webhook: webhooks.Webhook) -> list[webhooks.Delivery]:
    """What was written for an endpoint, oldest first."""
    async with ctx.store.scanning() as tx:
        found = await webhooks.delivery_page(
            tx, webhook.account_id, webhook.id, before=_LAST, ended_after=0, limit=_MAX
        )
    return found[::-1]


async def written_events(ctx: context.Context, webhook: webhooks.Webhook) -> list[dict[str, Any]]:
    """The events that were written for an endpoint, as it reads them. Each is as its schema says."""
    found = [json.loads(delivery.body) for delivery in await deliveries_for(ctx, webhook)]
    for event in found:
        check_schema(event, webhook.version)
    return found


def check_schema(event: dict[str, Any], version: int = events.V1) -> None:
    """Hold an event to the schema of its type and version, and to its members."""
    (found,) = [one for one in events.schema_of_type(events.EventType(event["type"])) if version in one.versions]
    schema = found.schema | {"additionalProperties": False}
    data = schema["properties"]["data"] | {"additionalProperties": False}
    schema["properties"] = schema["properties"] | {"data": data}
    jsonschema_rs.validator_for(schema, validate_formats=True).validate(event)
