"""`/messages/outbound`: search, details and source of messages."""

from typing import Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.search import search_query
from postroad.model.units import labels, times
from postroad.protocol.mime import address
from postroad.services.messages import lookup, previews
from postroad.storage.mail import messages as stored
from postroad.web import routing
from postroad_postmark import bounces, days, error_shape, event_format, long_lists, schemas

# What Postmark calls sent or processed is every message that is no longer queued.
Status = Literal["queued", "sent", "processed"]


class MessagesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Filters of the search."""

    count: schemas.Count | None = None
    offset: schemas.Offset | None = None
    recipient: str | None = None
    fromemail: str | None = None
    tag: str | None = None
    status: Status | None = None
    subject: str | None = None
    fromdate: str | None = None
    todate: str | None = None
    messagestream: str | None = None
    metadata: str | None = msgspec.field(name="metadata_*", default=None)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Search messages, newest first."""
    query: MessagesQuery = request.query
    count, offset = query.count or 100, query.offset or 0
    filters = lookup.Filters(
        status=statuses.MessageStatus.QUEUED if query.status == "queued" else None,
        sender=query.fromemail or None,
        recipient=query.recipient or None,
        tag=query.tag or None,
        metadata=_metadata(query),
        after=days.begin("fromdate", query.fromdate or None),
        before=days.end("todate", query.todate or None),
        mode=statuses.Mode.TEST if request.caller.is_test else statuses.Mode.LIVE,
        words=(_words(query.subject),) if query.subject else (),
    )
    account_id, rows = request.caller.account_id, offset + count + 1
    with long_lists.reading(ctx, account_id, rows=rows):
        found = (await lookup.page(ctx, account_id, filters, limit=rows, cursor=None)).messages
    if query.status in ("sent", "processed"):
        found = [message for message in found if message.status != statuses.MessageStatus.QUEUED]
    listed = found[offset : offset + count]
    receipts = await lookup.receipts(ctx, account_id, listed)
    shown = [_message(message, receipts[message.id]) for message in listed if message.id in receipts]
    return extension_api.respond({"TotalCount": len(found), "Messages": shown})


def _metadata(query: MessagesQuery) -> str | None:
    """The filter for metadata, which the stream of a message is part of."""
    if query.messagestream and query.metadata:
        raise errors.InvalidRequest("messagestream: cannot be combined with a filter for metadata; use one of them")
    return f"{event_format.STREAM}:{query.messagestream}" if query.messagestream else query.metadata


def _words(subject: str) -> str:
    return labels.check_label("subject", subject, limit=search_query.MAX_CHARACTERS).lower()


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A message with its bodies and what happened to it."""
    account_id, message_id = request.caller.account_id, request.path["id"]
    raw = await _raw(ctx, request)
    details = await lookup.details(ctx, account_id, message_id)
    preview = await ctx.threads.run(account_id, lambda: previews.of_bytes(raw))
    events = [bounces.event(recipient, details.attempts) for recipient in details.recipients]
    return extension_api.respond(
        _message(details.message, details.receipt)
        | {
            "TextBody": preview.text or "",
            "HtmlBody": preview.html or "",
            "Body": raw.decode("utf-8", "replace"),
            "MessageEvents": [event for event in events if event is not None],
        }
    )


async def dump(ctx: context.Context, request: routing.Request) -> routing.Response:
    """The source of a message."""
    return extension_api.respond({"Body": (await _raw(ctx, request)).decode("utf-8", "replace")})


async def _raw(ctx: context.Context, request: routing.Request) -> bytes:
    """The source, empty if it is no longer retained. Raises MessageNotFound."""
    account_id, message_id = request.caller.account_id, request.path["id"]
    try:
        await lookup.check_mode(ctx, request.caller, message_id)
        await lookup.find(ctx, account_id, message_id)
    except errors.NotFound as refusal:
        raise error_shape.MessageNotFound(refusal.message) from None
    try:
        return await lookup.raw(ctx, account_id, message_id)
    except errors.NotFound:
        return b""


def _message(message: stored.Message, given: send_request.Receipt) -> dict[str, Any]:
    stream, metadata = event_format.stream_of(given.metadata or {})
    lists = {name: [_person(recipient) for recipient in getattr(given, name.lower())] for name in ("To", "Cc", "Bcc")}
    everybody = [person["Email"] for people in lists.values() for person in people]
    return {
        "Tag": given.tags[0] if given.tags else "",
        "MessageID": message.id,
        "MessageStream": stream,
        **lists,
        "Recipients": list(dict.fromkeys(everybody)),
        "ReceivedAt": times.to_wire(message.created_at),
        "From": message.sender,
        "Subject": message.subject,
        "Attachments": [attachment.filename for attachment in given.attachments],
        "Status": "Queued" if message.status == statuses.MessageStatus.QUEUED else "Sent",
        "TrackOpens": False,
        "TrackLinks": "None",
        "Metadata": metadata,
        "Sandboxed": bool(message.is_test),
    }


def _person(written: str) -> dict[str, str | None]:
    try:
        parsed = address.parse(written)
    except address.AddressError:  # mail over SMTP is kept as it was written
        return {"Email": written, "Name": None}
    return {"Email": parsed.written_address, "Name": parsed.display_name}


ROUTES: Final = (
    extension_api.route(
        "GET /messages/outbound",
        index,
        query=MessagesQuery,
        permission=callers.Permission.CONTENT,
        scope=callers.Scope.READ,
    ),
    extension_api.route(
        "GET /messages/outbound/{id}/details", show, permission=callers.Permission.CONTENT, scope=callers.Scope.READ
    ),
    extension_api.route(
        "GET /messages/outbound/{id}/dump", dump, permission=callers.Permission.CONTENT, scope=callers.Scope.READ
    ),
)
