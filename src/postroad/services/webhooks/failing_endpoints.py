"""Endpoints that fail: since when, and that they are disabled after three days without a success.

A change of state is rare, so it is noted after the result is recorded, in a transaction of its own: an attempt costs
nothing more while an endpoint works, or goes on failing. What a crash loses here, the next attempt notes. An endpoint
that works and fails at the same time may be noted as failing; before it is disabled, the log must have no success.
"""

from typing import Final

import msgspec

from postroad import errors
from postroad.model import times
from postroad.services import audit_log, context, owner_mail
from postroad.services.webhooks import endpoints
from postroad.storage import store, webhook_deliveries, webhooks
from postroad.telemetry import logs

DISABLE_AFTER_DAYS: Final = 3
REASON: Final = f"Every attempt has failed for {DISABLE_AFTER_DAYS} days."
# The same in the sentence of an audit log entry.
_DETAIL: Final = f"every attempt has failed for {DISABLE_AFTER_DAYS} days"
_SUBJECT: Final = "Your webhook at {host} was disabled"
_TEXT: Final = """\
Every attempt to deliver events to your webhook at {host} has failed since {since},
so it was disabled. Pending events are held for up to 7 days, and no new ones are
created.

When your endpoint works again, enable the webhook on its page in the dashboard, or
with PATCH /v1/webhooks/{id}. The delivery log shows the response to every attempt.
"""


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
    if not changed.enabled:
        log.warning("webhook_disabled", account_id=changed.account_id, webhook_id=changed.id)
        await _notify(ctx, changed, log=log)


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


async def _notify(ctx: context.Context, webhook: webhooks.Webhook, *, log: logs.Logger) -> None:
    host = endpoints.host(webhook.url)
    since = times.to_wire(webhook.failing_since or webhook.updated_at)
    text = _TEXT.format(host=host, since=since, id=webhook.id)
    try:
        await owner_mail.notify(ctx, webhook.account_id, subject=_SUBJECT.format(host=host), text=text)
    except errors.PostroadError as problem:
        log.warning("webhook_disabled_notice_failed", webhook_id=webhook.id, error=problem.code)


def _is_over(since: int, *, now: int) -> bool:
    return now - since >= DISABLE_AFTER_DAYS * times.DAY
