"""`/emails`: send one or many messages, read their status, reschedule and cancel them."""

from collections.abc import Awaitable
from typing import Annotated, Final

import msgspec

from postroad import errors
from postroad.api import email_schemas
from postroad.model import batch_request, caller, identifiers, mail, receipt, send_request, send_times
from postroad.services import context
from postroad.services.acceptance import submit, submit_batch, transaction
from postroad.services.messages import hidden_content
from postroad.services.messages import lookup as messages
from postroad.services.queue import cancellation, inspection, schedule
from postroad.web import routing


async def send(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept a message. The response is sent after the message is on disk."""
    accepting = submit.submit(
        ctx, request.caller, request.body, request_id=request.id, source=mail.Source.API, key=request.idempotency_key
    )
    return await _response(ctx, request.caller, accepting)


async def send_batch(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept several messages. The response is sent after all that are accepted are on disk."""
    accepting = submit_batch.submit_batch(
        ctx, request.caller, request.body, request_id=request.id, key=request.idempotency_key
    )
    return await _response(ctx, request.caller, accepting)


async def _response(
    ctx: context.Context, who: caller.Caller, accepting: Awaitable[transaction.Accepted]
) -> routing.Response:
    """The stored response, or the error, with what is left of the rate."""
    accepted, headers = await submit.with_rate_fields(ctx, who, accepting)
    return routing.Response(202, accepted.response, headers=headers, request_id=accepted.request_id)


class ShowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to add to the contract's members."""

    include: Annotated[
        str | None,
        msgspec.Meta(
            description="`queue` adds to each recipient when it is tried next, and why not earlier. Other values are "
            "ignored, as the contract has no response for them.",
            examples=["queue"],
        ),
    ] = None


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A message of the caller's account, with the status of each recipient."""
    query: ShowQuery = request.query
    account_id, message_id = request.caller.account_id, request.path["id"]
    await messages.check_mode(ctx, request.caller, message_id)
    queue_entries = (
        await inspection.entries_of_message(ctx, account_id, message_id) if query.include == "queue" else None
    )
    message, recipients = await messages.find(ctx, account_id, message_id)
    if not request.caller.sees_content:
        message = hidden_content.message(message)
    shown = email_schemas.message(message, recipients, request_id=request.id, queue_entries=queue_entries)
    return routing.Response(200, shown)


async def reschedule(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send a scheduled message at another time."""
    body: email_schemas.Reschedule = request.body
    _count_change(ctx, request.caller)
    await messages.check_change(ctx, request.caller, request.path["id"])
    send_at = None if body.send_at is None else send_times.parse_send_at(body.send_at)
    message = await schedule.reschedule(ctx, request.caller.account_id, request.path["id"], send_at)
    return routing.Response(200, email_schemas.schedule(message, request_id=request.id))


async def cancel(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Cancel the recipients for which no attempt has begun."""
    message_id = request.path["id"]
    _count_change(ctx, request.caller)
    await messages.check_change(ctx, request.caller, message_id)
    after = await cancellation.cancel_message(ctx, request.caller.account_id, message_id)
    return routing.Response(200, email_schemas.cancellation(message_id, after, request_id=request.id))


def _count_change(ctx: context.Context, who: caller.Caller) -> None:
    """Refuse more changes a second than sends: each locks the account, whether there is something to change or not."""
    # Counted apart: a send replaces the count of its account with that of the store, which knows sends only.
    ctx.rate_limiter.take(f"changes {who.account_id}", now=ctx.clock())


SEND_ERRORS: Final = (
    errors.InsufficientCredits,
    errors.Forbidden,
    errors.AccountSuspended,
    errors.IdempotencyConflict,
    errors.IdempotencyInProgress,
    errors.RateLimited,
    errors.WarmupLimited,
    errors.ServiceUnavailable,
    errors.TemporaryFailure,
)
SEND_HEADERS: Final = {
    "RateLimit": "Sends left in the current window.",
    "RateLimit-Policy": "The account's rate limit.",
    "Idempotent-Replayed": "`true` when this is the stored response to an earlier request with this key.",
}
ROUTES: tuple[routing.Route[context.Context], ...] = (
    routing.Route(
        method="POST",
        path="/emails",
        handler=send,
        summary="Send an email",
        description="Accepts a message and queues it. 202 means that the message is stored durably, not "
        "that it was delivered.",
        tag="Emails",
        permission=caller.Permission.SEND,
        body=send_request.SendRequest,
        body_rules={**email_schemas.SEND_RULES, "examples": email_schemas.SEND_EXAMPLES},
        body_limit=routing.MAX_SEND_BODY_BYTES,
        idempotent=True,
        responses={202: receipt.Receipt},
        errors=SEND_ERRORS,
        response_headers=SEND_HEADERS,
    ),
    routing.Route(
        method="POST",
        path="/emails/batch",
        handler=send_batch,
        summary="Send many emails",
        description=f"Accepts up to {batch_request.MAX_EMAILS} messages, or one template for up to "
        f"{batch_request.MAX_RECIPIENTS} recipients, under one `Idempotency-Key` and in one transaction. Each item has "
        "its result: the `id` of its message, or its `error`. With `all_or_nothing`, the first error refuses the whole "
        "batch. A batch of which nothing was accepted stores nothing, and its key can be used again.",
        tag="Emails",
        permission=caller.Permission.SEND,
        body=batch_request.BatchRequest,
        body_rules={**email_schemas.BATCH_RULES, "examples": email_schemas.BATCH_EXAMPLES},
        body_limit=routing.MAX_SEND_BODY_BYTES,
        idempotent=True,
        responses={202: receipt.BatchReceipt},
        errors=SEND_ERRORS,
        response_headers=SEND_HEADERS,
    ),
    routing.Route(
        method="GET",
        path="/emails/{id}",
        handler=show,
        summary="Get a message and its recipients",
        description="A message of another account is not found.",
        tag="Emails",
        permission=caller.Permission.READ,
        query=ShowQuery,
        ignores_bad_query=True,
        responses={200: email_schemas.Message},
        errors=(errors.NotFound,),
        path_patterns={"id": identifiers.pattern(identifiers.MESSAGE)},
    ),
    routing.Route(
        method="PATCH",
        path="/emails/{id}",
        handler=reschedule,
        summary="Reschedule a message",
        description="Sends a scheduled message at another time, or now. `conflict` unless it was submitted with "
        "`send_at` and no attempt has begun. `expires_at` changes by the same amount.",
        tag="Emails",
        permission=caller.Permission.SEND,
        body=email_schemas.Reschedule,
        body_rules={"examples": email_schemas.RESCHEDULE_EXAMPLES},
        responses={200: email_schemas.Schedule},
        errors=(errors.NotFound, errors.Forbidden, errors.Conflict, errors.RateLimited),
        path_patterns={"id": identifiers.pattern(identifiers.MESSAGE)},
    ),
    routing.Route(
        method="POST",
        path="/emails/{id}/cancel",
        handler=cancel,
        summary="Cancel a message",
        description="Cancels the recipients for which no attempt has begun, and returns their credits. The response "
        "says for each recipient whether it is canceled; repeating the request changes nothing.",
        tag="Emails",
        permission=caller.Permission.SEND,
        responses={200: email_schemas.Cancellation},
        errors=(errors.NotFound, errors.Forbidden, errors.RateLimited),
        path_patterns={"id": identifiers.pattern(identifiers.MESSAGE)},
    ),
)
