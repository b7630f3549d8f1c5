"""The progress of a message queued by `postroad send`."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from postroad.cli import command, output, queue_texts
from postroad.model import mail, wire_fields
from postroad.services import context as services_context
from postroad.services.acceptance import transaction
from postroad.services.messages import lookup as messages
from postroad.services.queue import inspection, wait_reasons
from postroad.storage import messages as stored_messages
from postroad.storage import recipients

# Short for a user, and a small load for the database.
POLL_SECONDS: Final = 0.1
MESSAGE: Final = ("id", "account_id", "status", "billing_status", "recipient_count", "request_id", "created_at")

Found = tuple[stored_messages.Message, list[recipients.Recipient]]
# By recipient.
WaitReasons = Mapping[str, wait_reasons.WaitReason]


async def queued(context: services_context.Context, account_id: str, accepted: transaction.Accepted) -> output.Report:
    """Report that the message is queued."""
    found = await messages.find(context, account_id, accepted.message_id)
    return output.Report(
        data=_view(found, accepted, {}), text=f"{_summary(found, accepted)} A running service delivers it."
    )


async def result(
    context: services_context.Context, account_id: str, accepted: transaction.Accepted, *, seconds: int
) -> output.Report:
    """Wait until all recipients are final; the exit code is 1 after a timeout."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        found = await messages.find(context, account_id, accepted.message_id)
        missing = [one for one in found[1] if one.status not in mail.FINAL]
        if not missing or loop.time() >= deadline:
            break
        await asyncio.sleep(POLL_SECONDS)
    reasons = await _wait_reasons(context, accepted.message_id) if missing else {}
    lines = [_summary(found, accepted), *(_recipient_line(one, reasons.get(one.id)) for one in found[1])]
    if missing:
        lines.append(_unfinished(missing, reasons, seconds=seconds))
    return output.Report(data=_view(found, accepted, reasons), text="\n".join(lines), exit_code=1 if missing else 0)


async def _wait_reasons(context: services_context.Context, message_id: str) -> WaitReasons:
    """Why recipients of the message wait."""
    traced = await inspection.trace(context, message_id)
    return {one.recipient.id: one.line.reason for one in traced.courses if one.line is not None}


def _summary(found: Found, accepted: transaction.Accepted) -> str:
    message, _ = found
    again = "was already queued with the same key" if accepted.replayed else "is queued"
    return f"{message.id} {again}, for {output.recipients(message.recipient_count)}."


def _recipient_line(one: recipients.Recipient, reason: wait_reasons.WaitReason | None) -> str:
    reply = wait_reasons.last_response(one.last_smtp_code, one.last_smtp_response)
    # That it is ready says nothing new.
    why = reason.sentence if reason is not None and reason.code is not wait_reasons.Code.READY else ""
    return ", ".join(filter(None, (f"{one.email}: {one.status}", reply, why)))


def _unfinished(missing: Sequence[recipients.Recipient], reasons: WaitReasons, *, seconds: int) -> str:
    if all(one.id in reasons and reasons[one.id].code is wait_reasons.Code.READY for one in missing):
        return f"No attempt within {seconds} s; check that the service is running."
    verb = "is" if len(missing) == 1 else "are"
    return (
        f"{output.recipients(len(missing))} {verb} not final after {seconds} s; "
        f"'postroad queue show {missing[0].message_id}{command.installation_option()}' shows more."
    )


def _view(found: Found, accepted: transaction.Accepted, reasons: WaitReasons) -> dict[str, object]:
    message, reached = found
    why = {recipient_id: reason.sentence for recipient_id, reason in reasons.items()}
    return {
        "message": wire_fields.of(message, MESSAGE, request_id=accepted.request_id),
        "replayed": accepted.replayed,
        "recipients": [
            wire_fields.of(one, [*queue_texts.RECIPIENT, "reason"], reason=why.get(one.id)) for one in reached
        ],
    }
