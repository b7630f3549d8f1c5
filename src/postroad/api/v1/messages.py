"""`/v1/messages`: the message log: search, details, raw content and retry."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import errors
from postroad.api import email_schemas
from postroad.api.v1 import resource, schemas
from postroad.model import (
    caller,
    cursors,
    identifiers,
    labels,
    limits,
    mail,
    receipt,
    search_query,
    times,
    wire_fields,
)
from postroad.model.bounces import disposition as bounces_disposition
from postroad.protocol import address_syntax
from postroad.protocol.mime import header_text
from postroad.services import context
from postroad.services.messages import downloads, previews
from postroad.services.messages import lookup as messages
from postroad.services.queue import inspection
from postroad.storage import attempts as stored_attempts
from postroad.storage import messages as stored_messages
from postroad.web import routing

RESOURCE: Final = resource.Resource("Messages", {"id": identifiers.pattern(identifiers.MESSAGE)})
RAW_TYPE: Final = "message/rfc822"

# Addresses to search for, as a pattern that tools can generate from; `address.parse` accepts more.
_LABEL: Final = r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,31}"
ADDRESS_PATTERN: Final = (
    r"^[A-Za-z0-9!#$%&'*+/=^_`{|}~\-](?:\.?[A-Za-z0-9!#$%&'*+/=^_`{|}~\-]){0,31}"
    rf"@(?:{_LABEL}\.){{1,3}}[A-Za-z](?:-?[A-Za-z0-9]){{1,31}}$"
)
FilterAddress = Annotated[
    str,
    msgspec.Meta(
        extra_json_schema={"pattern": ADDRESS_PATTERN, "maxLength": address_syntax.MAX_ADDRESS_OCTETS},
    ),
]
RecipientId = Annotated[
    str, schemas.id_of(identifiers.RECIPIENT, "Only this recipient; by default all waiting recipients of the message.")
]
Tag = Annotated[
    str,
    msgspec.Meta(
        description="Only messages with this tag.",
        min_length=1,
        max_length=limits.TAG_CHARACTERS,
        extra_json_schema={"pattern": labels.SCHEMA_PATTERN},
    ),
]


Metadata = Annotated[
    str,
    msgspec.Meta(
        description="Only messages with this value of a metadata key: `order:1042`.",
        max_length=search_query.MAX_CHARACTERS,
        extra_json_schema={"pattern": rf"^{limits.METADATA_KEY_PATTERN}:[^{header_text.UNSEEN}]+$"},
    ),
]


class MessageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A message in the list."""

    id: str
    status: mail.MessageStatus
    source: mail.Source
    sender: str = msgspec.field(name="from")
    subject: str
    billing_status: mail.BillingStatus
    recipient_count: int
    credits_reserved: int
    size: int
    created_at: times.WireTime
    # Where the sender gave them.
    send_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    expires_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    # Only of a test message.
    test: Literal[True] | msgspec.UnsetType = msgspec.UNSET


class MessagesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Filters of the list."""

    status: Annotated[mail.MessageStatus | None, msgspec.Meta(description="Only messages with this status.")] = None
    source: Annotated[mail.Source | None, msgspec.Meta(description="Only messages from this source.")] = None
    sender: (
        Annotated[FilterAddress, msgspec.Meta(description="Only messages from this address, case-insensitive.")] | None
    ) = msgspec.field(name="from", default=None)
    to: (
        Annotated[FilterAddress, msgspec.Meta(description="Only messages to this address, case-insensitive.")] | None
    ) = None
    tag: Tag | None = None
    metadata: Metadata | None = None
    after: (
        Annotated[
            schemas.Timestamp, msgspec.Meta(description="Only messages accepted at this time or later, RFC 3339.")
        ]
        | None
    ) = None
    before: (
        Annotated[schemas.Timestamp, msgspec.Meta(description="Only messages accepted before this time, RFC 3339.")]
        | None
    ) = None
    mode: (
        Annotated[
            mail.Mode,
            msgspec.Meta(
                description="`live` messages (the default), or those of `test` keys. A test key gets those only."
            ),
        ]
        | None
    ) = None
    limit: schemas.Limit | None = cursors.DEFAULT_LIMIT
    cursor: Annotated[str, schemas.cursor_of(identifiers.pattern(identifiers.MESSAGE))] | None = None


class MessagesResponse(schemas.Response, frozen=True):
    """Messages, newest first."""

    messages: list[MessageSummary]
    next_cursor: schemas.NextCursor


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery attempt for one recipient: the host, its reply, the cause and an explanation."""

    recipient_id: str
    started_at: times.WireTime
    duration_ms: float
    host: str
    address: str
    tls: str
    verdict: bounces_disposition.Verdict
    smtp_code: int | None
    smtp_response: str
    fault: bounces_disposition.Fault | None
    reason: str
    explanation: str
    in_doubt: bool


class AsyncBounce(msgspec.Struct, frozen=True, kw_only=True):
    """An asynchronous bounce or complaint: a report that arrived after the recipient was final."""

    recipient_id: str
    received_at: times.WireTime
    action: str
    status: str
    fault: str
    response: str


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which recipients to retry."""

    recipient_id: RecipientId | None = None


class RetryResponse(schemas.Response, frozen=True):
    """How many recipients are retried."""

    retried: Annotated[int, msgspec.Meta(description="Waiting recipients that are retried now.")]
    sending: Annotated[
        int, msgspec.Meta(description="Recipients that are being sent at the moment and were left unchanged.")
    ]


class MessageDetails(email_schemas.Message, frozen=True, kw_only=True):
    """A message with its details; `accepted_request_id` is the request that sent it."""

    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    reply_to: Annotated[str | tuple[str, ...] | None, msgspec.Meta(description="A list where several were given.")]
    headers: dict[str, str]
    tags: tuple[str, ...]
    attachments: tuple[receipt.AttachmentReceipt, ...]
    size: int
    accepted_request_id: str
    attempts: tuple[Attempt, ...]
    async_bounces: tuple[AsyncBounce, ...]


def _summary(row: stored_messages.Message) -> MessageSummary:
    given = {name: times.given_to_wire(getattr(row, name)) for name in ("send_at", "expires_at")}
    fields = MessageSummary.__struct_fields__
    return MessageSummary(**wire_fields.of(row, fields, **given, test=email_schemas.test_mark(row)))


def _details(found: messages.Details, queue_entries: email_schemas.QueueEntries, *, request_id: str) -> MessageDetails:
    seen = email_schemas.message(found.message, found.recipients, request_id=request_id, queue_entries=queue_entries)
    accepted = found.receipt
    names = ("to", "cc", "bcc", "headers", "tags", "attachments")
    return MessageDetails(
        **msgspec.structs.asdict(seen),
        **wire_fields.of(accepted, names),
        reply_to=None if accepted.reply_to is msgspec.UNSET else accepted.reply_to,
        size=found.message.size,
        accepted_request_id=found.message.request_id,
        attempts=tuple(map(_attempt, found.attempts)),
        async_bounces=tuple(schemas.from_record(AsyncBounce, row) for row in found.async_bounces),
    )


def _attempt(row: stored_attempts.Attempt) -> Attempt:
    return schemas.from_record(
        Attempt,
        row,
        duration_ms=row.duration / 1_000,
        smtp_response=row.response,
        fault=row.fault or None,
        explanation=bounces_disposition.explain(row.reason),
        in_doubt=bool(row.in_doubt),
    )


def _timestamp(field: str, text: str | None) -> int | None:
    return None if text is None else schemas.parse_timestamp(field, text)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List messages.

    Newest first. With several filters a page can contain fewer messages than `limit`, or none, and still have a
    `next_cursor`: continue until it is null.
    """
    query: MessagesQuery = request.query
    filters = messages.Filters(
        status=query.status,
        source=query.source,
        sender=query.sender,
        recipient=query.to,
        tag=query.tag,
        metadata=query.metadata,
        after=_timestamp("after", query.after),
        before=_timestamp("before", query.before),
        mode=mail.Mode.TEST if request.caller.is_test else query.mode or mail.Mode.LIVE,
    )
    page = await messages.page(
        ctx, request.caller.account_id, filters, limit=query.limit or cursors.DEFAULT_LIMIT, cursor=query.cursor
    )
    shown = [_summary(row) for row in page.messages]
    return routing.Response(200, MessagesResponse(shown, page.next_cursor, request_id=request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a message with its details.

    `queue` of a recipient says when it is tried next, and why not earlier.
    """
    account_id, message_id = request.caller.account_id, request.path["id"]
    await messages.check_mode(ctx, request.caller, message_id)
    queue_entries = await inspection.entries_of_message(ctx, account_id, message_id)
    found = await messages.details(ctx, account_id, message_id)
    return routing.Response(200, _details(found, queue_entries, request_id=request.id))


async def show_raw(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Download the raw message.

    Also not found when the content is no longer retained.
    """
    account_id, message_id = request.caller.account_id, request.path["id"]
    await messages.check_mode(ctx, request.caller, message_id)

    async def read() -> previews.Download:
        return previews.Download(f"{message_id}.eml", RAW_TYPE, await messages.raw(ctx, account_id, message_id))

    begun = await downloads.begin(ctx, account_id, read)
    return routing.attachment(begun.filename, begun.body, content_type=RAW_TYPE, length=begun.size)


async def retry(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Retry the waiting recipients of a message now.

    The retry does not count as a step of the schedule. A recipient attempted in the last 30 seconds keeps waiting;
    `rate_limited` when there is no other, `conflict` when no recipient is waiting. The body is optional.
    """
    body: Retry = request.body
    await messages.check_change(ctx, request.caller, request.path["id"])
    done = await inspection.retry_of_account(ctx, request.caller.account_id, request.path["id"], body.recipient_id)
    return routing.Response(200, RetryResponse(done.changed, done.held, request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/messages", index, query=MessagesQuery, responses={200: MessagesResponse}),
    RESOURCE.route("GET /v1/messages/{id}", show, responses={200: MessageDetails}),
    RESOURCE.download("GET /v1/messages/{id}/raw", show_raw, content_type=RAW_TYPE, errors=(errors.RateLimited,)),
    RESOURCE.route(
        "POST /v1/messages/{id}/retry",
        retry,
        scope=caller.Scope.SEND,
        body=Retry,
        body_required=False,
        body_rules={"examples": [{}]},
        responses={200: RetryResponse},
        errors=(errors.Conflict, errors.RateLimited),
    ),
)
