"""Endpoints, secrets, deliveries and attempts to store."""

from collections.abc import Sequence
from typing import Any

from postroad.model.units import identifiers
from postroad.storage.engine.store import Store
from postroad.storage.mail import webhooks
from tests.storage import samples

NOW = samples.NOW
SECOND = 1_000_000
LEASE = NOW + 30 * SECOND
URL = "https://hooks.example.org/told"
# Behind every id of a delivery.
LAST = "whd_~"


def webhook(webhook_id: str = "whk_1", account_id: str = "acc_1", **changes: Any) -> webhooks.Webhook:
    values: dict[str, Any] = {
        "id": webhook_id,
        "account_id": account_id,
        "url": URL,
        "events": "email.delivered email.bounced",
        "enabled": 1,
        "secret_hint": "whsec_…abcd",
        "created_at": NOW,
        "updated_at": NOW,
    }
    return webhooks.Webhook(**(values | changes))


def secret(version: int = 1, webhook_id: str = "whk_1", account_id: str = "acc_1", **changes: Any) -> webhooks.Secret:
    values: dict[str, Any] = {
        "account_id": account_id,
        "webhook_id": webhook_id,
        "version": version,
        "secret": b"sealed\0\xff",
        "created_at": NOW + version,
        "expires_at": None,
    }
    return webhooks.Secret(**(values | changes))


def delivery(number: int, webhook_id: str = "whk_1", account_id: str = "acc_1", **changes: Any) -> webhooks.Delivery:
    """One that was made `number` microseconds after NOW."""
    at = NOW + number
    values: dict[str, Any] = {
        "account_id": account_id,
        "webhook_id": webhook_id,
        "id": identifiers.make(identifiers.WEBHOOK_DELIVERY, now=at, entropy=bytes(7)),
        "event_id": f"evt_{number}",
        "event_type": "email.delivered",
        "message_id": f"em_{number}",
        "recipient_id": f"rcp_{number}",
        "url": URL,
        "body": b'{"id": "\xc3\xa9"}',
        "due_at": at,
        "created_at": at,
    }
    return webhooks.Delivery(**(values | changes))


def attempt(of: webhooks.Delivery, number: int = 1, **changes: Any) -> webhooks.Attempt:
    values: dict[str, Any] = {
        "account_id": of.account_id,
        "webhook_id": of.webhook_id,
        "delivery_id": of.id,
        "number": number,
        "started_at": NOW + number,
        "duration": 7,
        "status_code": 503,
        "response_body": "später",
        "error": None,
    }
    return webhooks.Attempt(**(values | changes))


def result(of: webhooks.Claimed, *, worker: str = "w1", **changes: Any) -> webhooks.DeliveryUpdate:
    """That it was delivered."""
    values: dict[str, Any] = {
        "key": of.key,
        "worker": worker,
        "attempt_count": of.attempt_count,
        "url": URL,
        "state": webhooks.State.SUCCEEDED,
        "due_at": NOW,
        "ended_at": NOW + SECOND,
    }
    return webhooks.DeliveryUpdate(**(values | changes))


async def add(store: Store, *rows: Any) -> None:
    """Store endpoints, secrets, deliveries and attempts, in this order."""
    async with store.transaction() as tx:
        for row in rows:
            if isinstance(row, webhooks.Webhook):
                await webhooks.insert(tx, row)
            elif isinstance(row, webhooks.Secret):
                await webhooks.add_secret(tx, row, hint="whsec_…abcd")
        await webhooks.insert_deliveries(tx, [row for row in rows if isinstance(row, webhooks.Delivery)])
        await webhooks.insert_attempts(tx, [row for row in rows if isinstance(row, webhooks.Attempt)])


async def claim(
    store: Store, most: int = 100, *, webhook_id: str = "whk_1", worker: str = "w1", until: int = LEASE
) -> list[webhooks.Claimed]:
    async with store.transaction() as tx:
        return await webhooks.claim(tx, [(webhook_id, most)], lease_until=until, worker=worker)


async def promote(store: Store, now: int, *, attempts: int = 7, most: int = 100) -> list[webhooks.Promoted]:
    async with store.transaction() as tx:
        return await webhooks.promote(tx, now=now, attempts=attempts, limit=most)


async def record(store: Store, *results: webhooks.DeliveryUpdate) -> set[webhooks.Key]:
    async with store.transaction() as tx:
        return await webhooks.record(tx, results)


async def log(store: Store, webhook_id: str = "whk_1", account_id: str = "acc_1") -> Sequence[webhooks.Delivery]:
    """All of an endpoint's deliveries, oldest first."""
    async with store.scanning() as tx:
        found = await webhooks.delivery_page(tx, account_id, webhook_id, before=LAST, ended_after=0, limit=1_000)
    return found[::-1]
