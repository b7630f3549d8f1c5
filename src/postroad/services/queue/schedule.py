"""Rescheduling a message, as long as no attempt has begun for any of its recipients."""

import dataclasses

from postroad import errors
from postroad.model import mail, send_times, times
from postroad.protocol.mime import builder
from postroad.services import audit_log, context, repeat_rate
from postroad.services.messages import lookup
from postroad.storage import accounts, messages, queue_views, store


async def reschedule(ctx: context.Context, account_id: str, message_id: str, send_at: int | None) -> messages.Message:
    """Send an account's own message at another time, None for now; returns it as it is then.

    Raises InvalidRequest for a time out of range, Conflict when it is not scheduled or is being sent, and RateLimited.
    """
    now = ctx.clock()
    if send_at is not None:
        send_times.check_send_at(send_at, now=now)
    moved_to = max(now, send_at or now)
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, {account_id})
        message, reached = await lookup.find_in(tx, account_id, message_id)
        free = await queue_views.unattempted(tx, account_id, message_id)
        if message.send_at is None or len(free) != len(reached):
            raise _conflict(message)
        # A message may be large, and its body is written again.
        await repeat_rate.take(ctx, tx, account_id, repeat_rate.Kind.RESCHEDULES)
        current = send_times.SendTimes(message.send_at, message.expires_at)
        moved = send_times.move(current, moved_to, created_at=message.created_at)
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
    if message.status != mail.MessageStatus.QUEUED:
        return errors.Conflict("the message has a final result; send it again instead")
    if message.send_at is None:
        return errors.Conflict("the message was not scheduled; only one submitted with send_at can be rescheduled")
    return errors.Conflict("an attempt has begun; the message can no longer be rescheduled")
