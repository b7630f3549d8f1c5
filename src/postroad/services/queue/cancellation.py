"""Ending recipients without an attempt: by their sender, or by the operator.

A sender cancels recipients for which no attempt has begun. They end as `canceled`, and their credits are returned. What
an operator cancels may have been attempted; it ends as `failed`, of which the application hears like of any failure. An
operator can also let recipients expire before their time: they end as `expired`, and their credits are returned.
Leased recipients are left alone: a worker is sending them and records the result.
"""

from collections.abc import Sequence
from typing import Final

from postroad.model import identifiers, mail, providers
from postroad.model.bounces import disposition
from postroad.services import audit_log, context
from postroad.services.messages import lookup
from postroad.services.results import outcomes
from postroad.storage import accounts, queue_views, recipients, store

BY_OPERATOR: Final = "canceled by the operator"
EXPIRED: Final = "expired by the operator"
BY_SENDER: Final = "canceled by the sender"


async def cancel_message(ctx: context.Context, account_id: str, message_id: str) -> list[recipients.Recipient]:
    """Cancel what can be canceled of an account's own message; returns its recipients as they are then."""
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, {account_id})
        await lookup.find_in(tx, account_id, message_id)
        free = await queue_views.unattempted(tx, account_id, message_id)
        events = await _end(ctx, tx, free, response=BY_SENDER, ended_as=mail.RecipientStatus.CANCELED, now=now)
        # Mail is in the message log: only what a user does is in the audit log too.
        if free and ctx.actor.user_id is not None:
            await audit_log.write(ctx, tx, account_id, "message.canceled", message_id)
        _, after = await lookup.find_in(tx, account_id, message_id)
    for _ in free:
        ctx.metrics.recipients.add(providers.NO_PROVIDER, mail.RecipientStatus.CANCELED.value)
    if events:
        ctx.webhook_wakeup.set()
    return after


async def cancel_batch(ctx: context.Context, tx: store.Transaction, account_id: str, message_ids: Sequence[str]) -> int:
    """The same for several messages, in a transaction that holds the lock of the account; returns how many recipients.

    The caller writes the audit log, and sets `ctx.webhook_wakeup` after the commit.
    """
    free = [one for message_id in message_ids for one in await queue_views.unattempted(tx, account_id, message_id)]
    await _end(ctx, tx, free, response=BY_SENDER, ended_as=mail.RecipientStatus.CANCELED, now=ctx.clock())
    return len(free)


async def cancel_unleased(ctx: context.Context, some: Sequence[queue_views.UnleasedRecipient]) -> int:
    """Cancel recipients for the operator, as far as they still have no lease; returns how many."""
    return await _end_unleased(ctx, some, response=BY_OPERATOR, ended_as=None)


async def expire_unleased(ctx: context.Context, some: Sequence[queue_views.UnleasedRecipient]) -> int:
    """Let recipients expire for the operator in the same way."""
    return await _end_unleased(ctx, some, response=EXPIRED, ended_as=mail.RecipientStatus.EXPIRED)


async def _end_unleased(
    ctx: context.Context,
    some: Sequence[queue_views.UnleasedRecipient],
    *,
    response: str,
    ended_as: mail.RecipientStatus | None,
) -> int:
    async with ctx.store.transaction() as tx:
        # Locked in the order in which results are recorded: accounts first.
        await accounts.lock(tx, {one.account_id for one in some})
        free = await queue_views.still_unleased(tx, [one.key for one in some])
        await _end(ctx, tx, free, response=response, ended_as=ended_as, now=ctx.clock())
    return len(free)


async def _end(
    ctx: context.Context,
    tx: store.Transaction,
    free: Sequence[queue_views.UnleasedRecipient],
    *,
    response: str,
    ended_as: mail.RecipientStatus | None,
    now: int,
) -> int:
    """Record the end of recipients that are locked; returns the number of events."""
    if not free:
        return 0
    ended = [
        outcomes.Outcome(
            key=one.key,
            email_key=one.email_key,
            recipient_count=0,
            verdict=disposition.Verdict.FAILED,
            smtp_code=None,
            response=response,
            at=now,
            ledger_id=ctx.new_id(identifiers.LEDGER, now=now),
            worker="",
            ended_as=ended_as,
        )
        for one in free
    ]
    (result,) = await outcomes.record(tx, [ended], outbox=ctx.outbox)
    return result.events
