"""Webhook endpoints, several for each account, and their signing secrets.

One of them is the first, which is `/v1/webhook` of the contract. Changing an endpoint locks its account first (see
accounts.py), as does recording results. So an event is written for the endpoint as it is at that moment, or not at all.
"""

import collections
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from postroad.model.events import webhook_formats
from postroad.storage.engine import store

LIVE: Final = "live"
TEST: Final = "test"
# In place of the URL of an endpoint whose events are fetched, not sent.
LISTENER_URL: Final = "listen:"


class Webhook(msgspec.Struct, frozen=True):
    """A row of `webhooks`. `events` are names separated by spaces; removed endpoints are not returned.

    `tags` and `sender_domains` have a line for each, and no line means all messages. `failing_since` is when the first
    of the attempts failed that have failed without a success since. `disabled_reason` says why the service disabled it.
    In the format of another service, which only additional endpoints have, `format_events` are the events in its words,
    `events` all of ours that they may come from, and `request_headers` what its requests have besides, encrypted.
    """

    id: str
    account_id: str
    url: str
    events: str
    enabled: int
    secret_hint: str
    created_at: int
    updated_at: int
    is_first: int = 1
    version: int = 1
    tags: str = ""
    sender_domains: str = ""
    mode: str = LIVE
    standard_signature: int = 0
    description: str = ""
    failing_since: int | None = None
    disabled_reason: str = ""
    format: str = webhook_formats.Format.POSTROAD
    format_events: str = ""
    request_headers: bytes | None = None

    @property
    def is_listener(self) -> bool:
        """Whether its events are fetched, not sent."""
        return self.url == LISTENER_URL


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
    """Create an endpoint. An account has one that is the first, at most."""
    await tx.execute("webhooks.insert", *msgspec.structs.astuple(webhook))
    await tx.execute("webhooks.note_events", webhook.id)


async def first_of(tx: store.Transaction, account_id: str) -> Webhook | None:
    """The first endpoint of an account, which is the contract's."""
    row = await tx.fetch_one("webhooks.first_of", account_id)
    return Webhook(*row) if row else None


async def of_account(tx: store.Transaction, account_id: str) -> list[Webhook]:
    """All endpoints of an account, the first one first, then the oldest."""
    return [Webhook(*row) for row in await tx.fetch("webhooks.of_account", account_id)]


async def by_id(tx: store.Transaction, account_id: str, webhook_id: str) -> Webhook | None:
    """An endpoint of an account."""
    row = await tx.fetch_one("webhooks.by_id", account_id, webhook_id)
    return Webhook(*row) if row else None


async def count(tx: store.Transaction, account_id: str) -> int:
    """How many endpoints an account has."""
    return len(await of_account(tx, account_id))


async def enabled_of(tx: store.Transaction, account_ids: Iterable[str]) -> dict[str, list[Webhook]]:
    """The endpoints of these accounts that are enabled, by account."""
    rows = await tx.fetch_many("webhooks.enabled_of", [(account_id,) for account_id in sorted(set(account_ids))])
    found: dict[str, list[Webhook]] = collections.defaultdict(list)
    for webhook in (Webhook(*row) for row in rows):
        found[webhook.account_id].append(webhook)
    return dict(found)


async def enabled(tx: store.Transaction, ids: Iterable[str]) -> dict[str, Webhook]:
    """Those of these endpoints that are enabled and not removed, by id."""
    rows = await tx.fetch_many("webhooks.enabled", [(webhook_id,) for webhook_id in sorted(set(ids))])
    return {webhook.id: webhook for webhook in (Webhook(*row) for row in rows)}


async def update(tx: store.Transaction, webhook: Webhook) -> None:
    """Change the settings; what it is, its secret and its creation stay."""
    await tx.execute(
        "webhooks.update",
        webhook.id,
        webhook.url,
        webhook.events,
        webhook.enabled,
        webhook.updated_at,
        webhook.version,
        webhook.tags,
        webhook.sender_domains,
        webhook.mode,
        webhook.standard_signature,
        webhook.description,
        webhook.failing_since,
        webhook.disabled_reason,
        webhook.format_events,
        webhook.request_headers,
    )
    await tx.execute("webhooks.note_events", webhook.id)


async def mark_pinged(tx: store.Transaction, webhook: Webhook, *, now: int, not_since: int) -> bool:
    """Record a ping; False when there was one after `not_since`."""
    return await tx.execute("webhooks.mark_pinged", webhook.id, now, not_since) == 1


async def pinged_at(tx: store.Transaction, webhook: Webhook) -> int | None:
    """When an endpoint was last pinged."""
    row = await tx.fetch_one("webhooks.pinged_at", webhook.id)
    return int(row[0]) if row else None


async def remove(tx: store.Transaction, webhook_id: str, *, now: int) -> None:
    """Remove an endpoint and its secrets; its log is no longer visible and left to the sweep."""
    await tx.execute("webhooks.remove", webhook_id, now)
    await tx.execute("webhooks.note_events", webhook_id)
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
    """Removed endpoints whose log may still exist, the first removed one first."""
    return [RemovedEndpoint(*row) for row in await tx.fetch("webhooks.removed", limit)]


async def forget(tx: store.Transaction, webhook_id: str) -> None:
    """Delete the row of a removed endpoint, if its log is empty."""
    await tx.execute("webhooks.forget", webhook_id)
