"""Webhook endpoints, one for each account, and their signing secrets.

Changing an endpoint locks its account first (see accounts.py), as does recording results. So an event is written for
the endpoint as it is at that moment, or not at all.
"""

from collections.abc import Iterable, Sequence

import msgspec

from postroad.storage import store


class Webhook(msgspec.Struct, frozen=True):
    """A row of `webhooks`. `events` are names separated by spaces; removed endpoints are not returned."""

    id: str
    account_id: str
    url: str
    events: str
    enabled: int
    secret_hint: str
    created_at: int
    updated_at: int


class Secret(msgspec.Struct, frozen=True):
    """A row of `webhook_secrets`, encrypted. The newest version does not expire."""

    account_id: str
    webhook_id: str
    version: int
    secret: bytes
    created_at: int
    expires_at: int | None


class RemovedEndpoint(msgspec.Struct, frozen=True):
    """A removed endpoint whose log may still exist."""

    account_id: str
    id: str


async def insert(tx: store.Transaction, webhook: Webhook) -> None:
    """Create the endpoint of an account, which must have none."""
    await tx.execute("webhooks.insert", *msgspec.structs.astuple(webhook))


async def of_account(tx: store.Transaction, account_id: str) -> Webhook | None:
    """The account's endpoint."""
    row = await tx.fetch_one("webhooks.of_account", account_id)
    return Webhook(*row) if row else None


async def enabled_of(tx: store.Transaction, account_ids: Iterable[str]) -> dict[str, Webhook]:
    """The endpoints of these accounts that are enabled, by account."""
    rows = await tx.fetch_many("webhooks.enabled_of", [(account_id,) for account_id in sorted(set(account_ids))])
    return {webhook.account_id: webhook for webhook in (Webhook(*row) for row in rows)}


async def enabled(tx: store.Transaction, ids: Iterable[str]) -> dict[str, Webhook]:
    """Those of these endpoints that are enabled and not removed, by id."""
    rows = await tx.fetch_many("webhooks.enabled", [(webhook_id,) for webhook_id in sorted(set(ids))])
    return {webhook.id: webhook for webhook in (Webhook(*row) for row in rows)}


async def update(tx: store.Transaction, webhook: Webhook) -> None:
    """Change URL, events and the enabled flag."""
    await tx.execute("webhooks.update", webhook.id, webhook.url, webhook.events, webhook.enabled, webhook.updated_at)


async def mark_pinged(tx: store.Transaction, account_id: str, *, now: int, not_since: int) -> bool:
    """Record a ping of an account; False when there was one after `not_since`."""
    return await tx.execute("webhooks.mark_pinged", account_id, now, not_since) == 1


async def pinged_at(tx: store.Transaction, account_id: str) -> int | None:
    """When an account was last pinged."""
    row = await tx.fetch_one("webhooks.pinged_at", account_id)
    return int(row[0]) if row else None


async def remove(tx: store.Transaction, webhook_id: str, *, now: int) -> None:
    """Remove an endpoint and its secrets; its log is no longer visible and left to the sweep."""
    await tx.execute("webhooks.remove", webhook_id, now)
    await remove_secrets(tx, webhook_id)


async def add_secret(tx: store.Transaction, secret: Secret, *, hint: str) -> None:
    """Store a new secret, which becomes the current one."""
    await tx.execute("webhooks.add_secret", *msgspec.structs.astuple(secret))
    await tx.execute("webhooks.set_hint", secret.webhook_id, hint, secret.created_at)


async def secrets(tx: store.Transaction, webhook_ids: Sequence[str], *, now: int) -> list[Secret]:
    """The secrets that have not expired, the newest of each endpoint first."""
    rows = await tx.fetch_many("webhooks.secrets", [(webhook_id, now) for webhook_id in webhook_ids])
    return sorted((Secret(*row) for row in rows), key=lambda secret: -secret.version)


async def retire_secret(tx: store.Transaction, webhook_id: str, *, expires_at: int) -> None:
    """Set the expiry of the current secret."""
    await tx.execute("webhooks.retire_secret", webhook_id, expires_at)


async def remove_secrets(tx: store.Transaction, webhook_id: str) -> None:
    """Delete all secrets of an endpoint."""
    await tx.execute("webhooks.remove_secrets", webhook_id)


async def sweep_secrets(tx: store.Transaction, *, now: int) -> int:
    """Delete expired secrets."""
    return await tx.execute("webhooks.sweep_secrets", now)


async def removed(tx: store.Transaction, *, limit: int) -> list[RemovedEndpoint]:
    """Removed endpoints whose log may still exist, oldest first."""
    return [RemovedEndpoint(*row) for row in await tx.fetch("webhooks.removed", limit)]


async def forget(tx: store.Transaction, webhook_id: str) -> None:
    """Delete the row of a removed endpoint, if its log is empty."""
    await tx.execute("webhooks.forget", webhook_id)
