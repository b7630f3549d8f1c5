"""The rows of the list of messages: what became of each, and why."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad.model import mail
from postroad.model.bounces import disposition
from postroad.services import context
from postroad.storage import messages, recipients

SCHEDULED: Final = "scheduled"
# Of these, the reason is worth a line.
_UNDELIVERED: Final = (*mail.FAILURES, mail.RecipientStatus.DEFERRED)


class Row(msgspec.Struct, frozen=True):
    """A message, its badge, and the recipient that says most about it."""

    message: messages.Message
    badge: str
    email: str
    # In a few words, and in sentences; empty for what was delivered.
    reason: str
    explanation: str
    smtp_code: int | None


async def read(ctx: context.Context, account_id: str, listed: Sequence[messages.Message]) -> list[Row]:
    """The rows of these messages."""
    async with ctx.store.reading() as tx:
        leading = await recipients.leading_of_messages(tx, account_id, [one.id for one in listed])
    return rows(listed, leading, now=ctx.clock())


def rows(
    listed: Sequence[messages.Message], leading: Mapping[str, recipients.LeadingRecipient], *, now: int
) -> list[Row]:
    """The same of what was read."""
    return [_row(one, leading.get(one.id), now=now) for one in listed]


def _row(message: messages.Message, one: recipients.LeadingRecipient | None, *, now: int) -> Row:
    if one is None:  # removed meanwhile
        return Row(message, message.status, "", "", "", None)
    if one.status not in _UNDELIVERED:
        return Row(message, _badge(message, one, now=now), one.email, "", "", None)
    # What was never attempted, such as mail to a suppressed address, has only the text of the decision.
    reason = one.reason.replace("_", " ") if one.reason else one.last_smtp_response or ""
    explanation = disposition.explain(one.reason) if one.reason else reason
    return Row(message, _badge(message, one, now=now), one.email, reason, explanation, one.last_smtp_code)


def _badge(message: messages.Message, one: recipients.LeadingRecipient, *, now: int) -> str:
    """The status of the message, or of its recipients where that says more."""
    if message.status == mail.MessageStatus.FAILED:
        return one.status
    if message.status != mail.MessageStatus.QUEUED:
        return message.status
    if message.send_at is not None and message.send_at > now and not one.attempt_count:
        return SCHEDULED
    is_deferred = one.status == mail.RecipientStatus.DEFERRED
    return one.status if is_deferred else message.status
