"""Changes of queued mail by its sender or the operator: cancel, expire and reschedule."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from postroad import context, errors
from postroad.mail.results import outcomes
from postroad.model.bounces import disposition
from postroad.model.delivery import providers
from postroad.model.mail import send_request, statuses
from postroad.model.units import identifiers, times
from postroad.protocol.mime import builder
from postroad.services import audit_log, usage_limits
from postroad.services.messages import lookup
from postroad.storage.engine import store
from postroad.storage.mail import messages, queue_views
from postroad.storage.people import accounts

BY_OPERATOR: Final = "canceled by the operator"
EXPIRED: Final = "expired by the operator"
BY_SENDER: Final = "canceled by the sender"


async def cancel_message(ctx: context.Context, account_id: str, message_id: str) -> list[messages.Recipient]:
    """Cancel what can be canceled of an account's own message; returns its recipients as they are then."""
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, {account_id})
        await lookup.find_in(tx, account_id, message_id)
        free = await queue_views.unattempted(tx, account_id, message_id)
        events = await _end(ctx, tx, free, response=BY_SENDER, status=statuses.RecipientStatus.CANCELED, now=now)
        # Mail is in the message log: only what a user does is in the audit log too.
        if free and ctx.actor.user_id is not None:
            await audit_log.write(ctx, tx, account_id, "message.canceled", message_id)
        _, after = await lookup.find_in(tx, account_id, message_id)
    for _ in free:
        ctx.metrics.recipients.add(providers.NO_PROVIDER, statuses.RecipientStatus.CANCELED.value)
    if events:
        ctx.webhook_wakeup.set()
    return after


async def cancel_batch(ctx: context.Context, tx: store.Transaction, account_id: str, message_ids: Sequence[str]) -> int:
    """The same for several messages, in a transaction that holds the lock of the account; returns how many recipients.

    The caller writes the audit log, and sets `ctx.webhook_wakeup` after the commit.
    """
    free = [
        recipient
        for message_id in message_ids
        for recipient in await queue_views.unattempted(tx, account_id, message_id)
    ]
    await _end(ctx, tx, free, response=BY_SENDER, status=statuses.RecipientStatus.CANCELED, now=ctx.clock())
    return len(free)


async def cancel_unleased(ctx: context.Context, some: Sequence[queue_views.UnleasedRecipient]) -> int:
    """Cancel recipients for the operator, as far as they still have no lease; returns how many."""
    return await _end_unleased(ctx, some, response=BY_OPERATOR, status=statuses.RecipientStatus.FAILED)


async def expire_unleased(ctx: context.Context, some: Sequence[queue_views.UnleasedRecipient]) -> int:
    """Let recipients expire for the operator in the same way."""
    return await _end_unleased(ctx, some, response=EXPIRED, status=statuses.RecipientStatus.EXPIRED)


async def _end_unleased(
    ctx: context.Context,
    some: Sequence[queue_views.UnleasedRecipient],
    *,
    response: str,
    status: statuses.RecipientStatus,
) -> int:
    async with ctx.store.transaction() as tx:
        # Locked in the order in which results are recorded: accounts first.
        await accounts.lock(tx, {recipient.account_id for recipient in some})
        free = await queue_views.still_unleased(tx, [recipient.key for recipient in some])
        await _end(ctx, tx, free, response=response, status=status, now=ctx.clock())
    return len(free)


async def _end(
    ctx: context.Context,
    tx: store.Transaction,
    free: Sequence[queue_views.UnleasedRecipient],
    *,
    response: str,
    status: statuses.RecipientStatus,
    now: int,
) -> int:
    """Record the end of recipients that are locked; returns the number of events."""
    if not free:
        return 0
    ended = [
        outcomes.Outcome(
            key=recipient.key,
            email_key=recipient.email_key,
            recipient_count=0,
            verdict=disposition.Verdict.FAILED,
            status=status,
            smtp_code=None,
            response=response,
            at=now,
            ledger_id=ctx.new_id(identifiers.LEDGER, now=now),
            worker="",
        )
        for recipient in free
    ]
    (result,) = await outcomes.record(tx, [ended], outbox=ctx.outbox)
    return result.events


async def reschedule(ctx: context.Context, account_id: str, message_id: str, send_at: int | None) -> messages.Message:
    """Send an account's own message at another time, None for now; returns it as it is then.

    Raises InvalidRequest for a time out of range, Conflict when it is not scheduled or is being sent, and RateLimited.
    """
    now = ctx.clock()
    if send_at is not None:
        send_request.check_send_at(send_at, now=now)
    moved_to = max(now, send_at or now)
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, {account_id})
        message, reached = await lookup.find_in(tx, account_id, message_id)
        free = await queue_views.unattempted(tx, account_id, message_id)
        if message.send_at is None or len(free) != len(reached):
            raise _conflict(message)
        # A message may be large, and its body is written again.
        await usage_limits.take_repeat(ctx, tx, account_id, usage_limits.Repeat.RESCHEDULES)
        current = send_request.SendTimes(message.send_at, message.expires_at)
        moved = send_request.move_times(current, moved_to, created_at=message.created_at)
        await messages.reschedule(tx, account_id, message_id, send_at=moved_to, expires_at=moved.expires_at)
        await queue_views.reschedule(tx, account_id, message_id, send_at=moved_to, expires_at=moved.expires_at, now=now)
        await _redate(tx, message, current.begins_at(message.created_at), moved_to)
        # Mail is in the message log: only what a user does is in the audit log too.
        if ctx.actor.user_id is not None:
            await audit_log.write(ctx, tx, account_id, "message.rescheduled", message_id, times.to_wire(moved_to))
    ctx.mail_wakeup.set()
    return dataclasses.replace(message, send_at=moved_to, expires_at=moved.expires_at)


async def _redate(tx: store.Transaction, message: messages.Message, before: int, after: int) -> None:
    """Change the Date that Postroad has written; one that the sender has written stays."""
    old, new = (f"Date: {builder.format_date(time // times.SECOND)}\r\n".encode() for time in (before, after))
    body = await messages.body(tx, message.account_id, message.id) or b""
    place = body.find(old, 0, body.find(b"\r\n\r\n") + 2)
    if place == 0 or (place > 0 and body[place - 1 : place] == b"\n"):
        redated = body[:place] + new + body[place + len(old) :]
        await messages.replace_body(tx, message.account_id, message.id, redated)


def _conflict(message: messages.Message) -> errors.Conflict:
    if message.status != statuses.MessageStatus.QUEUED:
        return errors.Conflict("the message has a final result; send it again instead")
    if message.send_at is None:
        return errors.Conflict("the message was not scheduled; only one submitted with send_at can be rescheduled")
    return errors.Conflict("an attempt has begun; the message can no longer be rescheduled")
