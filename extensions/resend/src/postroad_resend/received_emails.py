"""Resend's received emails: list, get, and the links to their files.

HTML has its inline images as `cid:` references, each the `content_id` of a file, which `html_format` says.
"""

from typing import Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.model.events import events
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.inbound import attachment_links, received
from postroad.storage.mail import received as stored
from postroad.web import routing
from postroad_resend import emails, event_format, payload

# A list says what is in each mail, so it reads them: a page ends before there is more of them to read.
MAX_LISTED_BYTES: Final = 32 * 1024 * 1024


class Shown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to show inline images."""

    html_format: Literal["data_uri", "cid"] | None = None


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List received mail, newest first."""
    query: emails.Page = request.query
    account_id = request.caller.account_id
    page = await received.page(ctx, account_id, limit=query.rows, cursor=query.after)
    listed: list[dict[str, Any]] = []
    size = 0
    for row in page.rows:
        size += row.size if row.has_body else 0
        if listed and size > MAX_LISTED_BYTES:
            break
        listed.append(await _listed(ctx, account_id, row))
    has_more = page.next_cursor is not None or len(listed) < len(page.rows)
    return extension_api.respond({"object": "list", "has_more": has_more, "data": listed})


async def _listed(ctx: context.Context, account_id: str, row: stored.Received) -> dict[str, Any]:
    try:
        return _summary(await received.view(ctx, account_id, row.id))
    except errors.NotFound:  # the content is no longer retained
        return {
            "id": row.id,
            "created_at": times.to_wire(row.received_at),
            "from": row.sender,
            "to": [row.recipient],
            "bcc": [],
            "cc": [],
            "message_id": row.message_id_field or "",
            "subject": row.subject,
            "reply_to": [],
            "received_for": [row.recipient],
            "attachments": [],
        }


def _summary(data: events.ReceivedData) -> dict[str, Any]:
    return {
        "id": data.inbound_id,
        "created_at": times.to_wire(identifiers.time_of(data.inbound_id, identifiers.RECEIVED)),
        **event_format.header(data),
        "reply_to": [each.address for each in data.addresses.reply_to if each.address],
        "received_for": [data.to],
        "attachments": event_format.attachments(data),
    }


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A mail with its text, and a link to all of it."""
    query: Shown = request.query
    if query.html_format == "data_uri":
        raise payload.unsupported("html_format=data_uri")
    account_id = request.caller.account_id
    data = await received.view(ctx, account_id, request.path["id"])
    expires_at = ctx.clock() + attachment_links.LIFETIME
    raw = attachment_links.make(ctx, account_id, data.inbound_id, index=attachment_links.WHOLE, expires_at=expires_at)
    shown = {
        "object": "email",
        **_summary(data),
        "html": data.html,
        "html_format": "cid",
        "text": data.text,
        # Of fields with the same name the first: those above the sender's own were written here.
        "headers": {field.name.lower(): field.value for field in reversed(data.headers)},
        "raw": {"download_url": raw, "expires_at": times.to_wire(expires_at)},
    }
    return extension_api.respond(shown)


async def files(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the files of a mail, with links to them."""
    query: emails.Page = request.query
    found = await _files(ctx, request)
    begin = 0
    if query.after is not None:
        begin = next((place for place, file in enumerate(found, start=1) if file["id"] == query.after), 0)
        if not begin:
            raise errors.InvalidRequest("after: no such attachment of this email")
    end = begin + (query.rows if query.limit or query.before else len(found))
    return extension_api.respond({"object": "list", "has_more": end < len(found), "data": found[begin:end]})


async def show_file(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A file with a link to it."""
    for file in await _files(ctx, request):
        if file["id"] == request.path["attachment"]:
            return extension_api.respond({"object": "attachment", **file})
    raise errors.NotFound("no such attachment of this email")


async def _files(ctx: context.Context, request: routing.Request) -> list[dict[str, Any]]:
    data = await received.view(ctx, request.caller.account_id, request.path["id"])
    return [
        {**file, "download_url": link.url, "expires_at": data.attachments_expire_at}
        for file, link in zip(event_format.attachments(data), data.attachments, strict=True)
    ]


def _route(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> extension_api.Route:
    return extension_api.route(
        endpoint, handler, permission=callers.Permission.CONTENT, scope=callers.Scope.READ, **options
    )


ROUTES: Final = (
    _route("GET /emails/receiving", index, query=emails.Page),
    _route("GET /emails/receiving/{id}", show, query=Shown),
    _route("GET /emails/receiving/{id}/attachments", files, query=emails.Page),
    _route("GET /emails/receiving/{id}/attachments/{attachment}", show_file),
)
