"""`/emails`: send one or many messages, read their status, reschedule and cancel them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.mail.accept import submit, submit_batch
from postroad.model.mail import limits, send_request, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.messages import lookup, queue_changes, queue_inspection
from postroad.services.people import authentication
from postroad.services.queue import wait_reasons
from postroad.storage.mail import messages, queue_views
from postroad.web import routing

# The message as it is returned, and what the OpenAPI document adds to the send request: rules and examples.
#
# `SEND_RULES` are the rules across several members of `model/mail/send_request.py`.


def _given(member: str, **rule: object) -> dict[str, Any]:
    return {"required": [member], "properties": {member: rule}}


def _not_given(*members: str) -> dict[str, Any]:
    return {"properties": {member: {"type": "null"} for member in members}}


SEND_RULES: Final = {
    "allOf": [
        {
            "anyOf": [
                _given("text", type="string", minLength=1),
                _given("html", type="string", minLength=1),
                _given("attachments", type="array", minItems=1),
                _given("template", type="string"),
            ]
        },
        {"anyOf": [_given("subject", type="string"), _given("template", type="string")]},
        {"anyOf": [_not_given("template"), _not_given("text", "html")]},
        {"anyOf": [_not_given("variables"), _given("template", type="string")]},
    ]
}


SEND_EXAMPLES: Final[tuple[dict[str, Any], ...]] = (
    {
        "from": "Shop <hello@example.com>",
        "to": ["Ada <ada@example.net>"],
        "subject": "Your receipt",
        "text": "Thank you for your order.",
        "html": "<p>Thank you for your <b>order</b>.</p>",
        "tags": ["receipt"],
        "metadata": {"order": "1042"},
        "attachments": [{"filename": "receipt.txt", "content": "VG90YWw6IDQyLjAwCg=="}],
    },
    {"from": "hello@example.com", "to": "ada@example.net", "template": "welcome", "variables": {"name": "Ada"}},
    {
        "from": "hello@example.com",
        "to": "ada@example.net",
        "subject": "Your login code",
        "text": "123456",
        "expires_in": 120,
    },
    {
        "from": "hello@example.com",
        "to": "ada@example.net",
        "subject": "Your receipt",
        "text": "Thank you for your order.",
        "simulate": {"provider": "google", "behaviour": "rate_limited"},
    },
)


BATCH_RULES: Final = {
    "oneOf": [
        {
            **_given("emails", type="array"),
            "properties": {
                "emails": {"type": "array"},
                **_not_given("recipients", *send_request.BATCH_COMMON.values())["properties"],
            },
        },
        {
            "required": ["recipients", "template", "from"],
            "properties": {
                "recipients": {"type": "array"},
                "template": {"type": "string"},
                "from": {"type": "string"},
                **_not_given("emails")["properties"],
            },
        },
    ]
}


BATCH_EXAMPLES: Final[tuple[dict[str, Any], ...]] = (
    {
        "emails": [
            {
                "from": "Shop <hello@example.com>",
                "to": "ada@example.net",
                "subject": "Your receipt",
                "text": "Thank you for your order.",
                "metadata": {"order": "1042"},
            },
            {
                "from": "Shop <hello@example.com>",
                "to": "grace@example.org",
                "subject": "Your parcel",
                "text": "It is on its way.",
            },
        ],
        "all_or_nothing": False,
    },
    {
        "from": "hello@example.com",
        "template": "welcome",
        "tags": ["welcome"],
        "recipients": [
            {"to": "ada@example.net", "variables": {"name": "Ada"}, "metadata": {"customer": "1"}},
            {"to": "grace@example.org", "variables": {"name": "Grace"}},
        ],
    },
)


RESCHEDULE_EXAMPLES: Final[tuple[dict[str, Any], ...]] = ({"send_at": "2026-01-31T12:00:00Z"}, {"send_at": None})


QueueState = Annotated[
    str,
    msgspec.Meta(
        description="`waiting` for its next attempt, `scheduled` by its sender, `ready` for a connection, `sending`, "
        "or `held` by the operator.",
        extra_json_schema={"enum": list(queue_views.STATES)},
    ),
]


class WaitReason(msgspec.Struct, frozen=True):
    """Why a recipient is not delivered yet."""

    code: wait_reasons.Code
    text: Annotated[
        str,
        msgspec.Meta(
            description="The same for people, with the time of the next attempt in UTC and the recipients ahead.",
            examples=[
                "Google asked us to try later (4.7.28); next attempt at 2026-01-31 14:05:00 UTC; 312 recipients ahead"
            ],
        ),
    ]


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient in the queue: when it is tried next, and why not earlier."""

    state: QueueState
    next_attempt_at: Annotated[
        times.WireTime | None,
        msgspec.Meta(description="Null when it is being sent, is held, or is sent when its turn comes."),
    ]
    reason: WaitReason
    ahead: Annotated[
        int,
        msgspec.Meta(
            description="Recipients of this account at the same domain that are sent before this one. 1001 stands for "
            "more than 1,000.",
            ge=0,
            le=wait_reasons.MAX_AHEAD + 1,
        ),
    ]


class Recipient(msgspec.Struct, frozen=True):
    """One recipient and its delivery status."""

    id: str
    email: str
    status: statuses.RecipientStatus
    billing_status: statuses.BillingStatus
    attempt_count: int
    last_smtp_code: int | None
    last_smtp_response: str | None
    delivered_at: times.WireTime | None
    bounced_at: times.WireTime | None
    queue: Annotated[
        QueueEntry | msgspec.UnsetType | None, msgspec.Meta(description="Null when the recipient is not queued.")
    ] = msgspec.UNSET


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message and its recipients."""

    id: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": identifiers.pattern(identifiers.MESSAGE)})]
    status: statuses.MessageStatus
    source: statuses.Source
    sender: str = msgspec.field(name="from")
    subject: str
    billing_status: statuses.BillingStatus
    recipient_count: int
    credits_reserved: int
    created_at: times.WireTime
    recipients: list[Recipient]
    request_id: str
    # Where the sender gave them.
    send_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    expires_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    # Only of a test message.
    test: Literal[True] | msgspec.UnsetType = msgspec.UNSET


class Reschedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When to send a scheduled message."""

    send_at: Annotated[
        Annotated[str, msgspec.Meta(examples=["2026-01-31T12:00:00Z"], extra_json_schema={"format": "date-time"})]
        | None,
        msgspec.Meta(
            description=f"RFC 3339 with a time zone, up to {limits.SEND_AT_DAYS} days ahead; `null` sends it now."
        ),
    ]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The new times of a message."""

    id: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": identifiers.pattern(identifiers.MESSAGE)})]
    status: statuses.MessageStatus
    send_at: times.WireTime
    expires_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    request_id: str


class CanceledRecipient(msgspec.Struct, frozen=True):
    """A recipient after the cancellation."""

    id: str
    email: str
    canceled: Annotated[bool, msgspec.Meta(description="Whether it is canceled, by this request or an earlier one.")]
    status: statuses.RecipientStatus


class Cancellation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each recipient."""

    id: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": identifiers.pattern(identifiers.MESSAGE)})]
    recipients: list[CanceledRecipient]
    request_id: str


QueueEntries = Mapping[str, queue_inspection.QueueEntry]


def recipient_view(row: messages.Recipient, queue_entries: QueueEntries | None = None) -> Recipient:
    """A stored recipient in its public form, with its queue entry where they are given."""
    return Recipient(
        id=row.id,
        email=row.email,
        status=statuses.RecipientStatus(row.status),
        billing_status=statuses.BillingStatus(row.billing_status),
        attempt_count=row.attempt_count,
        last_smtp_code=row.last_smtp_code,
        last_smtp_response=row.last_smtp_response,
        delivered_at=times.optional_to_wire(row.delivered_at),
        bounced_at=times.optional_to_wire(row.bounced_at),
        queue=msgspec.UNSET if queue_entries is None else _queue_entry(row, queue_entries),
    )


def mark_of_test(row: messages.Message) -> Literal[True] | msgspec.UnsetType:
    """Only test messages have the member."""
    return True if row.is_test else msgspec.UNSET


def _queue_entry(row: messages.Recipient, queue_entries: QueueEntries) -> QueueEntry | None:
    entry = queue_entries.get(row.id)
    # The queue is read before the recipients, so that each that is not final has its entry.
    if entry is None or row.status in statuses.FINAL:
        return None
    return QueueEntry(
        state=entry.waiting.state,
        next_attempt_at=times.optional_to_wire(entry.reason.next_attempt_at),
        reason=WaitReason(entry.reason.code, entry.reason.sentence),
        ahead=entry.reason.ahead or 0,
    )


def message_view(
    row: messages.Message,
    its_recipients: Sequence[messages.Recipient],
    *,
    request_id: str,
    queue_entries: QueueEntries | None = None,
) -> Message:
    """A stored message in its public form."""
    return Message(
        id=row.id,
        status=statuses.MessageStatus(row.status),
        source=statuses.Source(row.source),
        sender=row.sender,
        subject=row.subject,
        billing_status=statuses.BillingStatus(row.billing_status),
        recipient_count=row.recipient_count,
        credits_reserved=row.credits_reserved,
        created_at=times.to_wire(row.created_at),
        recipients=[recipient_view(recipient, queue_entries) for recipient in its_recipients],
        request_id=request_id,
        send_at=times.given_to_wire(row.send_at),
        expires_at=times.given_to_wire(row.expires_at),
        metadata=msgspec.UNSET if row.metadata is None else msgspec.json.decode(row.metadata, type=dict[str, str]),
        test=mark_of_test(row),
    )


def schedule_view(row: messages.Message, *, request_id: str) -> Schedule:
    """The times of a message that was moved."""
    return Schedule(
        id=row.id,
        status=statuses.MessageStatus(row.status),
        send_at=times.to_wire(row.send_at or row.created_at),
        expires_at=times.given_to_wire(row.expires_at),
        request_id=request_id,
    )


def cancellation_view(message_id: str, after: Sequence[messages.Recipient], *, request_id: str) -> Cancellation:
    """The recipients of a message after it was canceled as far as possible."""
    shown = [
        CanceledRecipient(
            id=recipient.id,
            email=recipient.email,
            canceled=recipient.status == statuses.RecipientStatus.CANCELED,
            status=statuses.RecipientStatus(recipient.status),
        )
        for recipient in after
    ]
    return Cancellation(id=message_id, recipients=shown, request_id=request_id)


async def send(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept a message. The response is sent after the message is on disk."""
    who = request.caller
    accepted = await submit.submit(
        ctx, who, request.body, request_id=request.id, source=statuses.Source.API, key=request.idempotency_key
    )
    left = submit.rate_fields(ctx, who, accepted)
    return routing.Response(202, accepted.response, headers=left, request_id=accepted.request_id)


async def send_batch(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept several messages. The response is sent after all that are accepted are on disk."""
    accepted = await submit_batch.submit_batch(
        ctx, request.caller, request.body, request_id=request.id, key=request.idempotency_key
    )
    return routing.Response(
        202,
        accepted.response,
        headers=submit.rate_fields(ctx, request.caller, accepted),
        request_id=accepted.request_id,
    )


class ShowQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to add to the members of the interface."""

    include: Annotated[
        str | None,
        msgspec.Meta(
            description="`queue` adds to each recipient when it is tried next, and why not earlier. Other values are "
            "ignored, as the interface has no response for them.",
            examples=["queue"],
        ),
    ] = None


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A message of the caller's account, with the status of each recipient."""
    query: ShowQuery = request.query
    account_id, message_id = request.caller.account_id, request.path["id"]
    await lookup.check_mode(ctx, request.caller, message_id)
    queue_entries = (
        await queue_inspection.entries_of_message(ctx, account_id, message_id) if query.include == "queue" else None
    )
    message, recipients = await lookup.find(ctx, account_id, message_id)
    if not request.caller.sees_content:
        message = lookup.message_without_content(message)
    shown = message_view(message, recipients, request_id=request.id, queue_entries=queue_entries)
    return routing.Response(200, shown)


async def reschedule(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send a scheduled message at another time."""
    body: Reschedule = request.body
    _count_change(ctx, request.caller)
    await lookup.check_change(ctx, request.caller, request.path["id"])
    send_at = None if body.send_at is None else send_request.parse_send_at(body.send_at)
    message = await queue_changes.reschedule(ctx, request.caller.account_id, request.path["id"], send_at)
    return routing.Response(200, schedule_view(message, request_id=request.id))


async def cancel(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Cancel the recipients for which no attempt has begun."""
    message_id = request.path["id"]
    _count_change(ctx, request.caller)
    await lookup.check_change(ctx, request.caller, message_id)
    after = await queue_changes.cancel_message(ctx, request.caller.account_id, message_id)
    return routing.Response(200, cancellation_view(message_id, after, request_id=request.id))


def _count_change(ctx: context.Context, who: callers.Caller) -> None:
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
        permission=callers.Permission.SEND,
        # Mail has a rate of its own.
        require=authentication.require,
        body=send_request.SendRequest,
        body_rules={**SEND_RULES, "examples": SEND_EXAMPLES},
        body_limit=routing.MAX_SEND_BODY_BYTES,
        idempotent=True,
        responses={202: send_request.Receipt},
        errors=SEND_ERRORS,
        response_headers=SEND_HEADERS,
    ),
    routing.Route(
        method="POST",
        path="/emails/batch",
        handler=send_batch,
        summary="Send many emails",
        description=f"Accepts up to {send_request.MAX_EMAILS} messages, or one template for up to "
        f"{send_request.MAX_RECIPIENTS} recipients, under one `Idempotency-Key` and in one transaction. Each item has "
        "its result: the `id` of its message, or its `error`. With `all_or_nothing`, the first error refuses the whole "
        "batch. A batch of which nothing was accepted stores nothing, and its key can be used again.",
        tag="Emails",
        permission=callers.Permission.SEND,
        # Mail has a rate of its own.
        require=authentication.require,
        body=send_request.BatchRequest,
        body_rules={**BATCH_RULES, "examples": BATCH_EXAMPLES},
        body_limit=routing.MAX_SEND_BODY_BYTES,
        idempotent=True,
        responses={202: send_request.BatchReceipt},
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
        permission=callers.Permission.READ,
        query=ShowQuery,
        ignores_bad_query=True,
        responses={200: Message},
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
        permission=callers.Permission.SEND,
        body=Reschedule,
        body_rules={"examples": RESCHEDULE_EXAMPLES},
        responses={200: Schedule},
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
        permission=callers.Permission.SEND,
        responses={200: Cancellation},
        errors=(errors.NotFound, errors.Forbidden, errors.RateLimited),
        path_patterns={"id": identifiers.pattern(identifiers.MESSAGE)},
    ),
)
