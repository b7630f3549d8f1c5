"""The webhook endpoints of an account and their signing secrets.

One of them is the first: `/v1/webhook` acts on it, and so do the functions here without a `webhook_id`.
It is the one that was created while there was no first, and has our format; no other takes its place when it is
removed. Changes lock the
account's row, as recording results does, so an event is written for an endpoint as it is at that moment. A secret is
shown once, when it is created. A URL is checked before the transaction, because that queries DNS.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.keys import key_check
from postroad.mail import notice_kinds, notice_outbox
from postroad.model.events import event_formats
from postroad.model.units import identifiers, times
from postroad.services import audit_log, usage_limits
from postroad.services.webhooks import endpoint_settings, signed_requests
from postroad.storage.engine import store
from postroad.storage.mail import webhooks
from postroad.storage.people import accounts
from postroad.telemetry import logs

MAX_OVERLAP_HOURS: Final = 168
_PATH: Final = re.compile(r"(?<=[^:/])[/?].*", re.DOTALL)
# Each one adds a signature to every request.
MAX_OLD_SECRETS: Final = 5


@dataclass(frozen=True, slots=True)
class SavedEndpoint:
    webhook: webhooks.Webhook
    secret: str | None = field(default=None, repr=False)


async def of_account(ctx: context.Context, account_id: str) -> list[webhooks.Webhook]:
    async with ctx.store.reading() as tx:
        return await webhooks.of_account(tx, account_id)


async def find(ctx: context.Context, account_id: str, webhook_id: str | None = None) -> webhooks.Webhook | None:
    async with ctx.store.reading() as tx:
        return await find_in(tx, account_id, webhook_id)


async def get(ctx: context.Context, account_id: str, webhook_id: str) -> webhooks.Webhook:
    """The same, where it must exist."""
    return _existing(await find(ctx, account_id, webhook_id), webhook_id)


async def save(
    ctx: context.Context,
    account_id: str,
    *,
    url: str,
    wanted: Sequence[str] | None = None,
    enabled: bool | None = None,
) -> SavedEndpoint:
    """Create or change the account's first endpoint. None keeps what it has, or means the default.

    No events means the default ones, too.
    """
    changes = endpoint_settings.Changes(url=url, events=wanted, enabled=enabled)
    before = await find(ctx, account_id) if enabled is None else None
    checked = await _check(ctx, changes, before)
    async with ctx.store.transaction() as tx:
        existing = await find_locked(tx, account_id)
        if existing is None:
            saved = await create_in(ctx, tx, account_id, checked)
        else:
            saved = SavedEndpoint(await _change(ctx, tx, existing, checked))
    # Deliveries held while it was disabled can be sent now.
    ctx.webhook_wakeup.set()
    return saved


async def create(
    ctx: context.Context,
    account_id: str,
    changes: endpoint_settings.Changes,
    *,
    of_format: str = event_formats.OWN,
) -> SavedEndpoint:
    """Create one more endpoint, with a URL; what is not given has its default.

    In the format of another service it needs events of that service.
    """
    checked = await _check(ctx, changes, None, of_format=of_format)
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        return await create_in(ctx, tx, account_id, checked, of_format=of_format)


async def change(
    ctx: context.Context, account_id: str, webhook_id: str, changes: endpoint_settings.Changes
) -> webhooks.Webhook:
    """Change an endpoint; what is not given stays."""
    existing = await get(ctx, account_id, webhook_id)
    checked = await _check(ctx, changes, existing)
    if existing.is_listener:
        raise errors.Conflict("this webhook has no URL: its events are fetched; end the listener, and begin another")
    async with ctx.store.transaction() as tx:
        webhook = await _change(ctx, tx, await lock(tx, account_id, webhook_id), checked)
    ctx.webhook_wakeup.set()
    return webhook


async def remove(ctx: context.Context, account_id: str, webhook_id: str | None = None) -> None:
    """Remove the endpoint with its secrets, pending deliveries and log."""
    async with ctx.store.transaction() as tx:
        existing = await lock(tx, account_id, webhook_id)
        await webhooks.remove(tx, existing.id, now=ctx.clock())
        await audit_log.write(ctx, tx, account_id, "webhook.removed", host(existing.url))


async def rotate(
    ctx: context.Context, account_id: str, webhook_id: str | None = None, *, overlap_hours: int | None = None
) -> str:
    """Create a new secret. The old ones stop at once, or the current one keeps signing for `overlap_hours`."""
    if overlap_hours is not None and not 1 <= overlap_hours <= MAX_OVERLAP_HOURS:
        raise errors.InvalidRequest(f"overlap_hours: must be 1 to {MAX_OVERLAP_HOURS}")
    async with ctx.store.transaction() as tx:
        existing = await lock(tx, account_id, webhook_id)
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


async def find_in(tx: store.Transaction, account_id: str, webhook_id: str | None) -> webhooks.Webhook | None:
    """An endpoint of the account, in a transaction."""
    if webhook_id is None:
        return await webhooks.first_of(tx, account_id)
    if not identifiers.is_identifier(webhook_id, identifiers.WEBHOOK):
        return None
    return await webhooks.by_id(tx, account_id, webhook_id)


async def find_locked(tx: store.Transaction, account_id: str, webhook_id: str | None = None) -> webhooks.Webhook | None:
    """The same, locked until the transaction ends."""
    await accounts.lock(tx, [account_id])
    return await find_in(tx, account_id, webhook_id)


async def lock(tx: store.Transaction, account_id: str, webhook_id: str | None = None) -> webhooks.Webhook:
    """The same, where an endpoint must exist."""
    return _existing(await find_locked(tx, account_id, webhook_id), webhook_id)


def not_found() -> errors.NotFound:
    return errors.NotFound("no such webhook in this account")


def host(url: str) -> str:
    """The host of a URL for the audit log: its path and query may be secrets of the endpoint."""
    if url == webhooks.LISTENER_URL:
        return "listener"
    try:
        return parse.urlsplit(url).hostname or ""
    except ValueError:  # the rules were different when it was saved
        return ""


def _existing(found: webhooks.Webhook | None, webhook_id: str | None) -> webhooks.Webhook:
    if found is None:
        raise errors.NotFound("this account has no webhook") if webhook_id is None else not_found()
    return found


async def _check(
    ctx: context.Context,
    changes: endpoint_settings.Changes,
    before: webhooks.Webhook | None,
    *,
    of_format: str = event_formats.OWN,
) -> endpoint_settings.Changes:
    """The changes in their stored form. The URL is checked when it is given, and when the endpoint is enabled."""
    checked = endpoint_settings.check(
        changes, of_format=of_format if before is None else before.format, formats=ctx.event_formats
    )
    url = changes.url
    if url is None and changes.enabled and before is not None and not before.is_listener:
        url = before.url
    if url is None:
        return checked
    is_enabled = changes.enabled is not False and (changes.enabled is True or before is None or bool(before.enabled))
    return msgspec.structs.replace(checked, url=await ctx.webhook_client.check(url, is_enabled=is_enabled))


async def create_in(
    ctx: context.Context,
    tx: store.Transaction,
    account_id: str,
    changes: endpoint_settings.Changes,
    *,
    of_format: str = event_formats.OWN,
) -> SavedEndpoint:
    """Create an endpoint with settings that were checked, in a transaction that has locked the account."""
    await usage_limits.check_quota(ctx, tx, account_id, "webhooks")
    now = ctx.clock()
    webhook = webhooks.Webhook(
        id=ctx.new_id(identifiers.WEBHOOK, now=now),
        account_id=account_id,
        url="",
        events=endpoint_settings.DEFAULT_EVENTS,
        enabled=1,
        secret_hint="",
        created_at=now,
        updated_at=now,
        # A listener comes and goes, and no other takes the place of the first when it is removed.
        is_first=int(
            of_format == event_formats.OWN
            and changes.url != webhooks.LISTENER_URL
            and await webhooks.first_of(tx, account_id) is None
        ),
        format=of_format,
    )
    webhook = _apply(ctx, webhook, changes, now=now)
    await webhooks.insert(tx, webhook)
    secret = await _add_secret(ctx, tx, webhook, version=1, now=now)
    await _log_saved(ctx, tx, webhook)
    return SavedEndpoint(msgspec.structs.replace(webhook, secret_hint=signed_requests.secret_hint(secret)), secret)


async def _change(
    ctx: context.Context, tx: store.Transaction, existing: webhooks.Webhook, changes: endpoint_settings.Changes
) -> webhooks.Webhook:
    webhook = _apply(ctx, existing, changes, now=ctx.clock())
    await webhooks.update(tx, webhook)
    await _log_saved(ctx, tx, webhook)
    return webhook


def _apply(
    ctx: context.Context, webhook: webhooks.Webhook, changes: endpoint_settings.Changes, *, now: int
) -> webhooks.Webhook:
    changed = endpoint_settings.apply(webhook, changes, now=now)
    fields = changes.request_headers
    if fields is None and _origin(changed.url) == _origin(webhook.url):
        return changed
    # They may be credentials, which nobody is shown: whoever changes the URL must not have them sent elsewhere.
    sealed = signed_requests.encrypt_headers(ctx, fields or (), webhook_id=webhook.id)
    return msgspec.structs.replace(changed, request_headers=sealed)


def _origin(url: str) -> str:
    return _PATH.sub("", url)


async def _log_saved(ctx: context.Context, tx: store.Transaction, webhook: webhooks.Webhook) -> None:
    detail = webhook.events if webhook.enabled else "disabled"
    await audit_log.write(ctx, tx, webhook.account_id, "webhook.saved", host(webhook.url), detail)


async def _add_secret(
    ctx: context.Context, tx: store.Transaction, webhook: webhooks.Webhook, *, version: int, now: int
) -> str:
    await key_check.require_current(ctx.keys, tx)
    secret = signed_requests.new_secret()
    row = webhooks.Secret(
        account_id=webhook.account_id,
        webhook_id=webhook.id,
        version=version,
        secret=signed_requests.encrypt_secret(ctx, secret, webhook_id=webhook.id),
        created_at=now,
        expires_at=None,
    )
    await webhooks.add_secret(tx, row, hint=signed_requests.secret_hint(secret))
    return secret


def _refuse_too_many(good: Sequence[webhooks.Secret]) -> None:
    if len(good) <= MAX_OLD_SECRETS:
        return
    first = min(secret.expires_at for secret in good if secret.expires_at is not None)
    raise errors.Conflict(
        f"overlap_hours: {MAX_OLD_SECRETS} old secrets are still valid, the first of them until "
        f"{times.to_wire(first)}; wait until then, or rotate without an overlap, which ends them all"
    )


# Endpoints that fail: since when, and that they are disabled after three days without a success.
#
# A change of state is rare, so it is noted after the result is recorded, in a transaction of its own: an attempt costs
# nothing more while an endpoint works, or goes on failing. What a crash loses here, the next attempt notes. An endpoint
# that works and fails at the same time may be noted as failing; before it is disabled, the log must have no success.

DISABLE_AFTER_DAYS: Final = 3
DISABLED_REASON: Final = f"Every attempt has failed for {DISABLE_AFTER_DAYS} days."
# The same in the sentence of an audit log entry.
_DETAIL: Final = f"every attempt has failed for {DISABLE_AFTER_DAYS} days"


def is_news(webhook: webhooks.Webhook, *, succeeded: bool, now: int) -> bool:
    """Whether an attempt changes what is known of its endpoint, which is as it was when the attempt began."""
    if succeeded or webhook.failing_since is None:
        return succeeded == (webhook.failing_since is not None)
    return _is_over(webhook.failing_since, now=now)


async def note_attempts(
    ctx: context.Context, webhook: webhooks.Webhook, *, succeeded: bool, at: int, log: logs.Logger
) -> None:
    """Note the result of an attempt, and disable the endpoint when it has failed for too long."""
    async with ctx.store.transaction() as tx:
        current = await find_locked(tx, webhook.account_id, webhook.id)
        if current is None or not current.enabled or current.url != webhook.url:
            return
        changed = await _changed(ctx, tx, current, succeeded=succeeded, at=at)
        if changed != current:
            await webhooks.update(tx, changed)
            await _notify(ctx, tx, current, changed)
    if not changed.enabled:
        log.warning("webhook_disabled", account_id=changed.account_id, webhook_id=changed.id)


async def _changed(
    ctx: context.Context, tx: store.Transaction, current: webhooks.Webhook, *, succeeded: bool, at: int
) -> webhooks.Webhook:
    since, now = current.failing_since, ctx.clock()
    if succeeded or since is None:
        return msgspec.structs.replace(current, failing_since=None if succeeded else at)
    if not _is_over(since, now=now):
        return current
    if await webhooks.has_succeeded(tx, current.account_id, current.id, since=since):
        return msgspec.structs.replace(current, failing_since=at)
    await audit_log.write(ctx, tx, current.account_id, "webhook.disabled", host(current.url), _DETAIL)
    return msgspec.structs.replace(current, enabled=0, disabled_reason=DISABLED_REASON, updated_at=now)


async def _notify(
    ctx: context.Context, tx: store.Transaction, before: webhooks.Webhook, after: webhooks.Webhook
) -> None:
    """Tell the owners that an endpoint begins to fail, or is disabled."""
    if after.enabled and (after.failing_since is None or before.failing_since is not None):
        return
    values = {
        "webhook_id": after.id,
        "host": host(after.url),
        "since": times.to_wire(after.failing_since or after.updated_at),
    }
    kind = notice_kinds.WEBHOOK_FAILING if after.enabled else notice_kinds.WEBHOOK_DISABLED
    told = notice_outbox.NewNotice(kind=kind, subject=after.id, values=values, account_id=after.account_id)
    await notice_outbox.write(tx, [told], now=ctx.clock(), entropy=ctx.entropy)


def _is_over(since: int, *, now: int) -> bool:
    return now - since >= DISABLE_AFTER_DAYS * times.DAY
