"""Endpoints that fail: since when, and that they are disabled after three days without a success.

A change of state is rare, so it is noted after the result is recorded, in a transaction of its own: an attempt costs
nothing more while an endpoint works, or goes on failing. What a crash loses here, the next attempt notes. An endpoint
that works and fails at the same time may be noted as failing; before it is disabled, the log must have no success.
"""

from typing import Final

import msgspec

from postroad.model import times
from postroad.services import audit_log, context
from postroad.services.notices import kinds, outbox
from postroad.services.webhooks import endpoints
from postroad.storage import store, webhook_deliveries, webhooks
from postroad.telemetry import logs

DISABLE_AFTER_DAYS: Final = 3
REASON: Final = f"Every attempt has failed for {DISABLE_AFTER_DAYS} days."
# The same in the sentence of an audit log entry.
_DETAIL: Final = f"every attempt has failed for {DISABLE_AFTER_DAYS} days"


def is_news(webhook: webhooks.Webhook, *, succeeded: bool, now: int) -> bool:
    """Whether an attempt changes what is known of its endpoint, which is as it was when the attempt began."""
    if succeeded or webhook.failing_since is None:
        return succeeded == (webhook.failing_since is not None)
    return _is_over(webhook.failing_since, now=now)


async def note(ctx: context.Context, webhook: webhooks.Webhook, *, succeeded: bool, at: int, log: logs.Logger) -> None:
    """Note the result of an attempt, and disable the endpoint when it has failed for too long."""
    async with ctx.store.transaction() as tx:
        current = await endpoints.find_locked(tx, webhook.account_id, webhook.id)
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
    if await webhook_deliveries.has_succeeded(tx, current.account_id, current.id, since=since):
        return msgspec.structs.replace(current, failing_since=at)
    await audit_log.write(ctx, tx, current.account_id, "webhook.disabled", endpoints.host(current.url), _DETAIL)
    return msgspec.structs.replace(current, enabled=0, disabled_reason=REASON, updated_at=now)


async def _notify(
    ctx: context.Context, tx: store.Transaction, before: webhooks.Webhook, after: webhooks.Webhook
) -> None:
    """Tell the owners that an endpoint begins to fail, or is disabled."""
    if after.enabled and (after.failing_since is None or before.failing_since is not None):
        return
    values = {
        "webhook_id": after.id,
        "host": endpoints.host(after.url),
        "since": times.to_wire(after.failing_since or after.updated_at),
    }
    kind = kinds.WEBHOOK_FAILING if after.enabled else kinds.WEBHOOK_DISABLED
    told = outbox.NewNotice(kind=kind, subject=after.id, values=values, account_id=after.account_id)
    await outbox.write(tx, [told], now=ctx.clock(), entropy=ctx.entropy)


def _is_over(since: int, *, now: int) -> bool:
    return now - since >= DISABLE_AFTER_DAYS * times.DAY
