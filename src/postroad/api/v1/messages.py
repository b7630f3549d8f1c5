"""`/v1/messages`: the message log: search, details, raw content, retry and resend."""

from typing import Annotated, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api import emails
from postroad.api.v1 import resource
from postroad.mail.accept import submit
from postroad.model.bounces import disposition
from postroad.model.mail import limits, send_request, statuses
from postroad.model.people import callers
from postroad.model.search import search_query
from postroad.model.units import identifiers, labels, times
from postroad.protocol.mime import address
from postroad.services.messages import lookup as messages
from postroad.services.messages import previews, queue_inspection
from postroad.services.messages import resend as resend_service
from postroad.storage.mail import attempts as stored_attempts
from postroad.storage.mail import messages as stored_messages
from postroad.web import routing


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One delivery attempt for one recipient: the host, its reply, the cause and an explanation."""

    recipient_id: str
    started_at: times.WireTime
    duration_ms: float
    host: str
    address: str
    tls: str
    source: Annotated[
        str, msgspec.Meta(description="The name of the source address; empty where the system chose the address.")
    ]
    verdict: disposition.Verdict
    smtp_code: int | None
    smtp_response: str
    fault: disposition.Fault | None
    reason: str
    explanation: str
    in_doubt: bool
    conversation: (
        Annotated[
            str,
            msgspec.Meta(
                description="The SMTP commands (`C:`) and replies (`S:`), at most 4 KiB, without authentication and "
                "content. Only for the latest 50 attempts of the message that did not succeed."
            ),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


class AsyncBounce(msgspec.Struct, frozen=True, kw_only=True):
    """An asynchronous bounce or complaint: a report that arrived after the recipient was final."""

    recipient_id: str
    received_at: times.WireTime
    action: str
    status: str
    fault: str
    response: str


class MessageDetails(emails.Message, frozen=True, kw_only=True):
    """A message with its details; `accepted_request_id` is the request that sent it."""

    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    reply_to: Annotated[str | tuple[str, ...] | None, msgspec.Meta(description="A list if there are several.")]
    headers: dict[str, str]
    tags: tuple[str, ...]
    attachments: tuple[send_request.AttachmentReceipt, ...]
    size: int
    accepted_request_id: str
    attempts: tuple[Attempt, ...]
    async_bounces: tuple[AsyncBounce, ...]
    # Where it sends another message again, or was sent again itself.
    resend_of: str | msgspec.UnsetType = msgspec.UNSET
    resent_as: (
        Annotated[
            tuple[str, ...],
            msgspec.Meta(description="The messages that sent this one again, newest first, at most 20."),
        ]
        | msgspec.UnsetType
    ) = msgspec.UNSET


def details(found: messages.Details, queue_entries: emails.QueueEntries, *, request_id: str) -> MessageDetails:
    """The response about one message."""
    seen = emails.message_view(found.message, found.recipients, request_id=request_id, queue_entries=queue_entries)
    accepted = found.receipt
    names = ("to", "cc", "bcc", "headers", "tags", "attachments")
    return MessageDetails(
        **msgspec.structs.asdict(seen),
        **times.wire_fields(accepted, names),
        reply_to=None if accepted.reply_to is msgspec.UNSET else accepted.reply_to,
        size=found.message.size,
        accepted_request_id=found.message.request_id,
        attempts=tuple(
            _attempt(attempt, found.conversations.get((attempt.recipient_id, attempt.started_at)))
            for attempt in found.attempts
        ),
        async_bounces=tuple(resource.from_record(AsyncBounce, row) for row in found.async_bounces),
        resend_of=accepted.resend_of,
        resent_as=tuple(found.resent_as) or msgspec.UNSET,
    )


def _attempt(row: stored_attempts.Attempt, conversation: str | None) -> Attempt:
    return resource.from_record(
        Attempt,
        row,
        duration_ms=row.duration / 1_000,
        smtp_response=row.response,
        fault=row.fault or None,
        explanation=disposition.explain(row.reason),
        in_doubt=bool(row.in_doubt),
        conversation=conversation or msgspec.UNSET,
    )


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
        extra_json_schema={"pattern": ADDRESS_PATTERN, "maxLength": address.MAX_ADDRESS_OCTETS},
    ),
]
RecipientId = Annotated[
    str, resource.id_of(identifiers.RECIPIENT, "Only this recipient; by default all waiting recipients of the message.")
]
Tag = Annotated[
    str,
    msgspec.Meta(
        description="Only messages with this tag.",
        min_length=1,
        max_length=limits.TAG_CHARACTERS,
        extra_json_schema={"pattern": labels.LABEL_PATTERN},
    ),
]


Search = Annotated[
    str,
    msgspec.Meta(
        description="Only messages that this search finds, in the language of the dashboard's search box: "
        "`to:@gmail.com status:bounced after:2d -tag:test`. All terms, and all other filters, must match.",
        max_length=search_query.MAX_CHARACTERS,
        examples=["to:@gmail.com status:bounced"],
    ),
]
Metadata = Annotated[
    str,
    msgspec.Meta(
        description="Only messages with this value of a metadata key: `order:1042`.",
        max_length=search_query.MAX_CHARACTERS,
        extra_json_schema={"pattern": rf"^{limits.METADATA_KEY_PATTERN}:[^{address.UNSEEN}]+$"},
    ),
]


class MessageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A message in the list."""

    id: str
    status: statuses.MessageStatus
    source: statuses.Source
    sender: str = msgspec.field(name="from")
    subject: str
    billing_status: statuses.BillingStatus
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

    search: Search | None = None
    status: Annotated[statuses.MessageStatus | None, msgspec.Meta(description="Only messages with this status.")] = None
    source: Annotated[statuses.Source | None, msgspec.Meta(description="Only messages from this source.")] = None
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
            resource.Timestamp, msgspec.Meta(description="Only messages accepted at this time or later, RFC 3339.")
        ]
        | None
    ) = None
    before: (
        Annotated[resource.Timestamp, msgspec.Meta(description="Only messages accepted before this time, RFC 3339.")]
        | None
    ) = None
    mode: (
        Annotated[
            statuses.Mode,
            msgspec.Meta(
                description="`live` messages (the default), or those of `test` keys. A test key gets those only."
            ),
        ]
        | None
    ) = None
    count: (
        Annotated[
            Literal["true", "false"],
            msgspec.Meta(description="`true`: `count` says how many messages match, on all pages together."),
        ]
        | None
    ) = None
    limit: resource.Limit | None = identifiers.DEFAULT_LIMIT
    cursor: Annotated[str, resource.cursor_of(identifiers.pattern(identifiers.MESSAGE))] | None = None


class MessageCount(msgspec.Struct, frozen=True):
    """How many messages match: exactly `number`, or at least as many."""

    number: Annotated[int, msgspec.Meta(ge=0, le=messages.MAX_COUNT)]
    exact: bool


class MessagesResponse(resource.Response, frozen=True):
    """Messages, newest first."""

    messages: list[MessageSummary]
    next_cursor: resource.NextCursor
    # Only where it was asked for.
    count: MessageCount | msgspec.UnsetType = msgspec.UNSET


class Retry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which recipients to retry."""

    recipient_id: RecipientId | None = None


class RetryResponse(resource.Response, frozen=True):
    """How many recipients are retried."""

    retried: Annotated[int, msgspec.Meta(description="Waiting recipients that are retried now.")]
    sending: Annotated[
        int, msgspec.Meta(description="Recipients that are being sent at the moment and were left unchanged.")
    ]


class Resend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who gets the message again."""

    recipients: (
        Annotated[
            resend_service.Recipients,
            msgspec.Meta(
                description="`failed`, the default, for those that it did not reach (bounced, failed, expired or "
                "canceled), or `all`."
            ),
        ]
        | None
    ) = None
    recipient_id: (
        Annotated[str, resource.id_of(identifiers.RECIPIENT, "Only this recipient, whatever its result.")] | None
    ) = None


def _summary(row: stored_messages.Message) -> MessageSummary:
    given = {name: times.given_to_wire(getattr(row, name)) for name in ("send_at", "expires_at")}
    return MessageSummary(
        **times.wire_fields(row, MessageSummary.__struct_fields__, **given, test=emails.mark_of_test(row))
    )


def _timestamp(field: str, text: str | None) -> int | None:
    return None if text is None else resource.parse_timestamp(field, text)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List messages.

    Newest first. With several filters a page can contain fewer messages than `limit`, or none, and still have a
    `next_cursor`: continue until it is null.
    """
    query: MessagesQuery = request.query
    account_id, filters = request.caller.account_id, _filters(ctx, request)
    page = await messages.page(
        ctx, account_id, filters, limit=query.limit or identifiers.DEFAULT_LIMIT, cursor=query.cursor
    )
    sees_content = request.caller.sees_content
    shown = [_summary(row if sees_content else messages.message_without_content(row)) for row in page.messages]
    response = MessagesResponse(shown, page.next_cursor, request_id=request.id)
    if query.count == "true":
        counted = await messages.count(ctx, account_id, filters)
        response = msgspec.structs.replace(response, count=MessageCount(counted.number, counted.is_exact))
    return routing.Response(200, response)


def _filters(ctx: context.Context, request: routing.Request) -> messages.Filters:
    """The filters of the request beside those of its search; a test key sees test messages only."""
    query: MessagesQuery = request.query
    parse = search_query.parse if request.caller.sees_content else messages.check_search_without_content
    if query.metadata is not None and not request.caller.sees_content:
        raise errors.InvalidRequest("metadata: hidden from your role, and cannot be searched")
    searched = messages.filters_of(ctx, parse(query.search or ""))
    bounds = {"after": _timestamp("after", query.after), "before": _timestamp("before", query.before)}
    return msgspec.structs.replace(
        searched,
        status=query.status,
        source=query.source,
        sender=query.sender,
        recipient=query.to,
        tag=query.tag,
        metadata=query.metadata,
        after=max((time for time in (searched.after, bounds["after"]) if time is not None), default=None),
        before=min((time for time in (searched.before, bounds["before"]) if time is not None), default=None),
        mode=statuses.Mode.TEST if request.caller.is_test else query.mode or searched.mode,
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a message with its details.

    `queue` of a recipient says when it is tried next, and why not earlier.
    """
    account_id, message_id = request.caller.account_id, request.path["id"]
    await messages.check_mode(ctx, request.caller, message_id)
    queue_entries = await queue_inspection.entries_of_message(ctx, account_id, message_id)
    found = await messages.details(ctx, account_id, message_id)
    if not request.caller.sees_content:
        found = messages.details_without_content(found)
    return routing.Response(200, details(found, queue_entries, request_id=request.id))


async def show_raw(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Download the raw message.

    Also not found when the content is no longer retained.
    """
    account_id, message_id = request.caller.account_id, request.path["id"]
    await messages.check_mode(ctx, request.caller, message_id)

    async def read() -> previews.Download:
        return previews.Download(f"{message_id}.eml", RAW_TYPE, await messages.raw(ctx, account_id, message_id))

    begun = await previews.begin_download(ctx, account_id, read)
    return routing.attachment(begun.filename, begun.body, content_type=RAW_TYPE, length=begun.size)


async def retry(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Retry the waiting recipients of a message now.

    The retry does not count as a step of the schedule. A recipient attempted in the last 30 seconds keeps waiting;
    `rate_limited` when there is no other, `conflict` when no recipient is waiting. The body is optional.
    """
    body: Retry = request.body
    await messages.check_change(ctx, request.caller, request.path["id"])
    done = await queue_inspection.retry_of_account(
        ctx, request.caller.account_id, request.path["id"], body.recipient_id
    )
    return routing.Response(200, RetryResponse(done.changed, done.held, request_id=request.id))


async def resend(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send a message again.

    As a new message with the same content, through the same checks as any other; it costs credits, and the receipt has
    `resend_of`. By default to the recipients that the first one did not reach. Recipients on the suppression list are
    left out. `conflict` when the content is no longer retained, a chosen recipient is still being delivered, or none is
    left. The body is optional.
    """
    body: Resend = request.body
    await messages.check_change(ctx, request.caller, request.path["id"])
    accepted = await resend_service.resend(
        ctx,
        request.caller,
        request.path["id"],
        to=body.recipients or resend_service.Recipients.FAILED,
        recipient_id=body.recipient_id,
        request_id=request.id,
        key=request.idempotency_key,
    )
    return routing.Response(
        202,
        accepted.response,
        headers=submit.rate_fields(ctx, request.caller, accepted),
        request_id=accepted.request_id,
    )


ROUTES: Final = (
    RESOURCE.route("GET /v1/messages", index, query=MessagesQuery, responses={200: MessagesResponse}),
    RESOURCE.route("GET /v1/messages/{id}", show, responses={200: MessageDetails}),
    RESOURCE.download(
        "GET /v1/messages/{id}/raw",
        show_raw,
        content_type=RAW_TYPE,
        permission=callers.Permission.CONTENT,
        errors=(errors.RateLimited,),
    ),
    RESOURCE.route(
        "POST /v1/messages/{id}/retry",
        retry,
        scope=callers.Scope.SEND,
        body=Retry,
        body_required=False,
        body_rules={"examples": [{}]},
        responses={200: RetryResponse},
        errors=(errors.Conflict, errors.RateLimited),
    ),
    RESOURCE.route(
        "POST /v1/messages/{id}/resend",
        resend,
        scope=callers.Scope.SEND,
        body=Resend,
        body_required=False,
        body_rules={"examples": [{}, {"recipients": "all"}]},
        idempotent=True,
        responses={202: send_request.Receipt},
        errors=(errors.Conflict, *emails.SEND_ERRORS),
        response_headers=emails.SEND_HEADERS,
    ),
)
