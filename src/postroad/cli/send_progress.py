"""The progress of a message queued by `postroad send`."""

import asyncio
from collections.abc import Sequence
from typing import Final

from postroad.cli import command, output, queue_texts
from postroad.model import mail, wire_fields
from postroad.services import context as services_context
from postroad.services.acceptance import transaction
from postroad.services.messages import lookup as messages
from postroad.services.queue import inspection, wait_reasons
from postroad.storage import messages as stored_messages
from postroad.storage import queue_views, recipients

# Short for a user, and a small load for the database.
POLL_SECONDS: Final = 0.1
MESSAGE: Final = ("id", "account_id", "status", "billing_status", "recipient_count", "request_id", "created_at")

Found = tuple[stored_messages.Message, list[recipients.Recipient]]


async def queued(context: services_context.Context, account_id: str, accepted: transaction.Accepted) -> output.Report:
    """Report that the message is queued."""
    found = await messages.find(context, account_id, accepted.message_id)
    return output.Report(
        data=_view(found, accepted), text=f"{_summary(found, accepted)} A running service delivers it."
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
    lines = [_summary(found, accepted), *(_recipient_line(one) for one in found[1])]
    if missing:
        chosen = queue_views.Filter(account_id=account_id, message_id=accepted.message_id)
        held = (await inspection.count(context, [chosen])).held
        lines.append(_unfinished(found[1], missing, held=held, seconds=seconds))
    return output.Report(data=_view(found, accepted), text="\n".join(lines), exit_code=1 if missing else 0)


def _summary(found: Found, accepted: transaction.Accepted) -> str:
    message, _ = found
    again = "was already queued with the same key" if accepted.replayed else "is queued"
    return f"{message.id} {again}, for {output.recipients(message.recipient_count)}."


def _recipient_line(one: recipients.Recipient) -> str:
    reply = wait_reasons.last_response(one.last_smtp_code, one.last_smtp_response)
    return f"{one.email}: {one.status}, {reply}" if reply else f"{one.email}: {one.status}"


def _unfinished(
    known: Sequence[recipients.Recipient], missing: Sequence[recipients.Recipient], *, held: int, seconds: int
) -> str:
    if not held and all(one.status == mail.RecipientStatus.QUEUED for one in known):
        return f"No attempt within {seconds} s; check that the service is running."
    verb = "is" if len(missing) == 1 else "are"
    return (
        f"{output.recipients(len(missing))} {verb} not final after {seconds} s; "
        f"'postroad queue show {missing[0].message_id}{command.installation_option()}' shows why."
    )


def _view(found: Found, accepted: transaction.Accepted) -> dict[str, object]:
    message, reached = found
    return {
        "message": wire_fields.of(message, MESSAGE, request_id=accepted.request_id),
        "replayed": accepted.replayed,
        "recipients": [wire_fields.of(one, queue_texts.RECIPIENT) for one in reached],
    }
