"""An account's webhook endpoint and its signing secrets.

There is one per account. Changes lock the account's row, as recording results does, so an event is written for the
endpoint as it is at that moment. A secret is shown once, when it is created. The URL is checked before the transaction,
because that queries DNS.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib import parse

import msgspec

from postroad import errors
from postroad.model import events, identifiers, times
from postroad.services import audit_log, context
from postroad.services.auth import key_check
from postroad.services.webhooks import signing_secrets
from postroad.storage import accounts, store, webhooks

MAX_OVERLAP_HOURS: Final = 168
# Each one adds a signature to every request.
MAX_OLD_SECRETS: Final = 5


@dataclass(frozen=True, slots=True)
class SavedEndpoint:
    """An endpoint, and its secret when it is new."""

    webhook: webhooks.Webhook
    secret: str | None = field(default=None, repr=False)


async def find(ctx: context.Context, account_id: str) -> webhooks.Webhook | None:
    """The account's endpoint."""
    async with ctx.store.reading() as tx:
        return await webhooks.first_of(tx, account_id)


async def save(
    ctx: context.Context,
    account_id: str,
    *,
    url: str,
    wanted: Sequence[str] | None = None,
    enabled: bool | None = None,
) -> SavedEndpoint:
    """Create or change the account's endpoint. None keeps what it has, or means all events and enabled.

    No events means all of them, too.
    """
    given: dict[str, object] = {}
    if wanted is not None:
        given["events"] = _events(wanted)
    if enabled is not None:
        given["enabled"] = int(enabled)
    before = await find(ctx, account_id) if enabled is None else None
    is_enabled = enabled is not False and (before is None or bool(before.enabled))
    checked = await ctx.webhook_client.check(url, is_enabled=is_enabled)
    async with ctx.store.transaction() as tx:
        existing = await find_locked(tx, account_id)
        now = ctx.clock()
        webhook = existing or _new(ctx, account_id, now=now)
        webhook = msgspec.structs.replace(webhook, url=checked, updated_at=now, **given)
        if existing is None:
            saved = await _create(ctx, tx, webhook)
        else:
            await webhooks.update(tx, webhook)
            saved = SavedEndpoint(webhook)
        detail = webhook.events if webhook.enabled else "disabled"
        await audit_log.write(ctx, tx, account_id, "webhook.saved", host(checked), detail)
    # Deliveries held while it was disabled can be sent now.
    ctx.webhook_wakeup.set()
    return saved


async def remove(ctx: context.Context, account_id: str) -> None:
    """Remove the endpoint with its secrets, pending deliveries and log."""
    async with ctx.store.transaction() as tx:
        existing = await lock(tx, account_id)
        await webhooks.remove(tx, existing.id, now=ctx.clock())
        await audit_log.write(ctx, tx, account_id, "webhook.removed", host(existing.url))


async def rotate(ctx: context.Context, account_id: str, *, overlap_hours: int | None = None) -> str:
    """Create a new secret. The old ones stop at once, or the current one keeps signing for `overlap_hours`."""
    if overlap_hours is not None and not 1 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise errors.InvalidRequest(f"overlap_hours: must be 1 to {MAX_OVERLAP_HOURS}")
    async with ctx.store.transaction() as tx:
        existing = await lock(tx, account_id)
        now = ctx.clock()
        good = await webhooks.secrets(tx, [existing.id], now=now)
        if overlap_hours is None:
            await webhooks.remove_secrets(tx, existing.id)
        else:
            _refuse_too_many(good)
            await webhooks.retire_secret(tx, existing.id, expires_at=now + overlap_hours * times.HOUR)
        # Above all that the endpoint ever had, including expired ones not deleted yet: it is the newest.
        version = 1 + max(secret.version for secret in good)
        overlap = "" if overlap_hours is None else f"the old one is valid for {overlap_hours} more hours"
        await audit_log.write(ctx, tx, account_id, "webhook.secret_rotated", host(existing.url), overlap)
        return await _add_secret(ctx, tx, existing, version=version, now=now)


async def find_locked(tx: store.Transaction, account_id: str) -> webhooks.Webhook | None:
    """The account's endpoint, locked until the transaction ends."""
    await accounts.lock(tx, [account_id])
    return await webhooks.first_of(tx, account_id)


async def lock(tx: store.Transaction, account_id: str) -> webhooks.Webhook:
    """The same, where an endpoint must exist."""
    webhook = await find_locked(tx, account_id)
    if webhook is None:
        raise errors.NotFound("this account has no webhook")
    return webhook


def host(url: str) -> str:
    """The host of a URL for the audit log: its path and query may be secrets of the endpoint."""
    try:
        return parse.urlsplit(url).hostname or ""
    except ValueError:  # the rules were different when it was saved
        return ""


def _events(wanted: Sequence[str]) -> str:
    """The event names as stored: each once, in documented order."""
    for place, name in enumerate(wanted):
        if name not in events.SUBSCRIBABLE:
            raise errors.InvalidRequest(f"events[{place}]: must be one of {', '.join(events.SUBSCRIBABLE)}")
    return " ".join(kind for kind in events.SUBSCRIBABLE if kind in wanted or not wanted)


def _new(ctx: context.Context, account_id: str, *, now: int) -> webhooks.Webhook:
    """An endpoint with its defaults, which has no URL yet."""
    return webhooks.Webhook(
        id=ctx.new_id(identifiers.WEBHOOK, now=now),
        account_id=account_id,
        url="",
        events=_events(()),
        enabled=1,
        secret_hint="",
        created_at=now,
        updated_at=now,
    )


async def _create(ctx: context.Context, tx: store.Transaction, webhook: webhooks.Webhook) -> SavedEndpoint:
    await webhooks.insert(tx, webhook)
    secret = await _add_secret(ctx, tx, webhook, version=1, now=webhook.created_at)
    return SavedEndpoint(msgspec.structs.replace(webhook, secret_hint=signing_secrets.hint(secret)), secret)


async def _add_secret(
    ctx: context.Context, tx: store.Transaction, webhook: webhooks.Webhook, *, version: int, now: int
) -> str:
    await key_check.require_current(ctx, tx)
    secret = signing_secrets.new()
    row = webhooks.Secret(
        account_id=webhook.account_id,
        webhook_id=webhook.id,
        version=version,
        secret=signing_secrets.encrypt(ctx, secret, webhook_id=webhook.id),
        created_at=now,
        expires_at=None,
    )
    await webhooks.add_secret(tx, row, hint=signing_secrets.hint(secret))
    return secret


def _refuse_too_many(good: Sequence[webhooks.Secret]) -> None:
    """Refuse one more old secret than allowed."""
    if len(good) <= MAX_OLD_SECRETS:
        return
    first = min(secret.expires_at for secret in good if secret.expires_at is not None)
    raise errors.Conflict(
        f"overlap_hours: {MAX_OLD_SECRETS} old secrets are still valid, the first of them until "
        f"{times.to_wire(first)}; wait until then, or rotate without an overlap, which ends them all"
    )
