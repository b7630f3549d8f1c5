"""`/email`: single messages and batches, with bodies or from a template.

A batch of Postmark has up to 500 messages and ours 100, so a large one is accepted in several parts. Each item has its
own result. An error of the account refuses the request if it meets the first part, and else the items that are left.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.mail.accept import submit_batch
from postroad.model.mail import send_request
from postroad.model.people import callers
from postroad.model.units import times
from postroad.services.templates import templates as template_registry
from postroad.web import request_reader, routing
from postroad_postmark import error_shape, numbers, schemas, translation

_RECEIPT: Final = msgspec.json.Decoder(send_request.BatchReceipt)
# What is given beside a message of a batch, or why it was refused.
Read = tuple[str | None, send_request.SendRequest] | errors.PostroadError


class Sent(msgspec.Struct, frozen=True, rename="pascal"):
    """The result of an accepted message."""

    to: str | msgspec.UnsetType
    submitted_at: str
    message_id: str = msgspec.field(name="MessageID")
    error_code: int = 0
    message: str = "OK"


async def send(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept a message."""
    body: schemas.Email = request.body
    return await _send(ctx, request, body, translation.email(body))


async def send_template(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept a message from a template."""
    body: schemas.TemplateEmail = request.body
    alias = await _alias(ctx, request.caller.account_id, body)
    return await _send(ctx, request, body, translation.template_email(body, alias=alias))


async def _send(
    ctx: context.Context, request: routing.Request, given: schemas.Message, wanted: send_request.SendRequest
) -> routing.Response:
    accepted, fields = await extension_api.send(ctx, request, wanted)
    return extension_api.respond(_sent(ctx, given.to, accepted.message_id), headers=fields, is_accepted=True)


async def send_batch(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept several messages."""
    _check_count(request.body)
    read = await extension_api.read_each(ctx, request.caller.account_id, request.body, _read)
    return await _send_all(ctx, request, read)


async def send_template_batch(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept several messages from templates."""
    body: schemas.TemplateBatch = request.body
    _check_count(body.messages)
    account_id = request.caller.account_id
    given = await extension_api.read_each(ctx, account_id, body.messages, _template_email)
    # One look at the list, however many messages there are and whatever they name.
    aliases = await numbers.template_aliases(ctx, account_id)
    read = await extension_api.read_each(ctx, account_id, given, lambda _, item: _from_template(item, aliases))
    return await _send_all(ctx, request, read)


def _template_email(place: int, item: object) -> schemas.TemplateEmail | errors.PostroadError:
    try:
        given: schemas.TemplateEmail = request_reader.convert(item, schemas.TemplateEmail, root=f"Messages[{place}]")
    except errors.InvalidRequest as refusal:
        return refusal
    return given


def _named(given: schemas.TemplateEmail) -> str:
    """The template that a message names, by its alias or its number. Raises InvalidRequest."""
    name = given.template_alias or str(given.template_id or "")
    if not name:
        raise errors.InvalidRequest("TemplateAlias: give TemplateId or TemplateAlias")
    return name


def _from_template(given: schemas.TemplateEmail | errors.PostroadError, aliases: Mapping[str, str]) -> Read:
    if isinstance(given, errors.PostroadError):
        return given
    try:
        alias = aliases.get(_named(given))
        if alias is None:
            raise error_shape.TemplateNotFound("no such template in this account")
        return given.to, translation.template_email(given, alias=alias)
    except (errors.InvalidRequest, errors.NotFound) as refusal:
        return refusal


def _check_count(items: Sequence[object]) -> None:
    if not items:
        raise errors.InvalidRequest("body: the batch has no messages")
    if len(items) > schemas.MAX_BATCH:
        raise error_shape.TooManyMessages(
            f"body: the batch has {len(items)} messages; at most {schemas.MAX_BATCH} are allowed"
        )


def _read(place: int, item: object) -> Read:
    try:
        given = request_reader.convert(item, schemas.Email, root=f"body[{place}]")
        return given.to, translation.email(given)
    except errors.InvalidRequest as refusal:
        return refusal


async def _send_all(ctx: context.Context, request: routing.Request, read: Sequence[Read]) -> routing.Response:
    """Accept what could be read; the results are in the order of the request."""
    results: list[Sent | error_shape.Error | None] = [
        error_shape.shape(entry, entry.message)[1] if isinstance(entry, errors.PostroadError) else None
        for entry in read
    ]
    waiting = [(place, *entry) for place, entry in enumerate(read) if not isinstance(entry, errors.PostroadError)]
    api_key = request.caller.key
    has_approval_limit = api_key is not None and api_key.limits.approval_above is not None
    if len(waiting) > send_request.MAX_EMAILS and has_approval_limit:
        # Each part alone could be within the limit of one request.
        raise errors.Forbidden(
            f"this API key has an approval limit, so a batch may have {send_request.MAX_EMAILS} messages at most"
        )
    key = extension_api.idempotency_key(request)
    is_replay = bool(waiting)
    for start in range(0, len(waiting), send_request.MAX_EMAILS):
        part = waiting[start : start + send_request.MAX_EMAILS]
        wanted = send_request.BatchRequest(emails=tuple(email for _, _, email in part))
        try:
            accepted = await submit_batch.submit_batch(
                ctx, request.caller, wanted, request_id=request.id, key=f"{key}/{start}" if start else key
            )
        except errors.PostroadError as refusal:
            if not start:
                raise
            for place, _, _ in waiting[start:]:
                results[place] = error_shape.shape(refusal, refusal.message)[1]
            break
        is_replay = is_replay and accepted.replayed
        for (place, to, _), result in zip(part, _RECEIPT.decode(accepted.response).results, strict=True):
            results[place] = _result(ctx, to, result)
    return extension_api.respond(
        results,
        headers=(send_request.REPLAYED,) if is_replay else (),
        is_accepted=any(isinstance(answer, Sent) for answer in results),
    )


def _result(ctx: context.Context, to: str | None, result: send_request.BatchResult) -> Sent | error_shape.Error:
    if isinstance(result.error, send_request.ItemError):
        return error_shape.Error(error_shape.CODES[result.error.code], result.error.message)
    return _sent(ctx, to, result.id or "")


def _sent(ctx: context.Context, to: str | None, message_id: str) -> Sent:
    return Sent(to or msgspec.UNSET, times.to_wire(ctx.clock()), message_id)


async def _alias(ctx: context.Context, account_id: str, given: schemas.TemplateEmail) -> str:
    """The alias of the template that a message names. Raises TemplateNotFound."""
    alias = await numbers.template_alias(ctx, account_id, _named(given))
    try:
        return (await template_registry.find(ctx, account_id, alias)).alias
    except errors.NotFound as refusal:
        raise error_shape.TemplateNotFound(refusal.message) from None


_SENDING: Final[Mapping[str, Any]] = {
    "permission": callers.Permission.SEND,
    "body_limit": routing.MAX_SEND_BODY_BYTES,
    "idempotent": True,
    "key_required": False,
}
ROUTES: Final = (
    extension_api.route("POST /email", send, body=schemas.Email, **_SENDING),
    extension_api.route("POST /email/batch", send_batch, body=list, **_SENDING),
    extension_api.route("POST /email/withTemplate", send_template, body=schemas.TemplateEmail, **_SENDING),
    extension_api.route("POST /email/batchWithTemplates", send_template_batch, body=schemas.TemplateBatch, **_SENDING),
)
