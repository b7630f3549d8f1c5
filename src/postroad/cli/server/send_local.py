"""`postroad send` on an installation: queue a message for its running service, and follow it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from postroad import context as services_context
from postroad.cli.framework import command, output
from postroad.cli.server import queue_texts
from postroad.cli.server import send as send_command
from postroad.mail.accept import submit, transaction
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.messages import lookup as messages
from postroad.services.messages import queue_inspection
from postroad.services.queue import wait_reasons
from postroad.storage.mail import messages as stored_messages
from postroad.storage.people import accounts

# Short for a user, and a small load for the database.
POLL_SECONDS: Final = 0.1
MESSAGE: Final = ("id", "account_id", "status", "billing_status", "recipient_count", "request_id", "created_at")

Found = tuple[stored_messages.Message, list[stored_messages.Recipient]]
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
        missing = [one for one in found[1] if one.status not in statuses.FINAL]
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
    traced = await queue_inspection.trace(context, message_id)
    return {one.recipient.id: one.line.reason for one in traced.courses if one.line is not None}


def _summary(found: Found, accepted: transaction.Accepted) -> str:
    message, _ = found
    again = "was already queued with the same key" if accepted.replayed else "is queued"
    return f"{message.id} {again}, for {output.recipients(message.recipient_count)}."


def _recipient_line(one: stored_messages.Recipient, reason: wait_reasons.WaitReason | None) -> str:
    reply = wait_reasons.last_response(one.last_smtp_code, one.last_smtp_response)
    # That it is ready says nothing new.
    why = reason.sentence if reason is not None and reason.code is not wait_reasons.Code.READY else ""
    return ", ".join(filter(None, (f"{one.email}: {one.status}", reply, why)))


def _unfinished(missing: Sequence[stored_messages.Recipient], reasons: WaitReasons, *, seconds: int) -> str:
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
        "message": times.wire_fields(message, MESSAGE, request_id=accepted.request_id),
        "replayed": accepted.replayed,
        "recipients": [
            times.wire_fields(one, [*queue_texts.RECIPIENT, "reason"], reason=why.get(one.id)) for one in reached
        ],
    }


async def send(
    context: services_context.Context, account: accounts.Account, *, key: str | None, wait: int | None, **fields: Any
) -> output.Report:
    """Queue a message of the account."""
    who = callers.Caller(account.id, None, callers.Scheme.TOKEN, callers.EVERYTHING)
    accepted = await submit.submit(
        context,
        who,
        _request(send_command.message(fields)),
        request_id=context.new_id(identifiers.REQUEST, now=context.clock()),
        source=statuses.Source.TEST,
        key=None if key is None else send_command.checked_key(key),
    )
    if wait is None:
        return await queued(context, account.id, accepted)
    return await result(context, account.id, accepted, seconds=wait)


def _request(message: dict[str, Any]) -> send_request.SendRequest:
    attached = tuple(send_request.Attachment(**one) for one in message.pop("attachments"))
    return send_request.SendRequest(sender=message.pop("from"), attachments=attached, **message)
