"""`postroad send` on an installation: queue a message for its running service."""

from typing import Any

from postroad.cli import output, send_progress
from postroad.cli import send as send_command
from postroad.model import caller, identifiers, mail, send_request
from postroad.services import context as services_context
from postroad.services.acceptance import submit
from postroad.storage import accounts


async def send(
    context: services_context.Context, account: accounts.Account, *, key: str | None, wait: int | None, **fields: Any
) -> output.Report:
    """Queue a message of the account."""
    who = caller.Caller(account.id, None, caller.Scheme.TOKEN, caller.EVERYTHING)
    accepted = await submit.submit(
        context,
        who,
        _request(send_command.message(fields)),
        request_id=context.new_id(identifiers.REQUEST, now=context.clock()),
        source=mail.Source.TEST,
        key=None if key is None else send_command.checked_key(key),
    )
    if wait is None:
        return await send_progress.queued(context, account.id, accepted)
    return await send_progress.result(context, account.id, accepted, seconds=wait)


def _request(message: dict[str, Any]) -> send_request.SendRequest:
    attached = tuple(send_request.Attachment(**one) for one in message.pop("attachments"))
    return send_request.SendRequest(sender=message.pop("from"), attachments=attached, **message)
