"""Resend's emails: send, batch, list, get, reschedule and cancel."""

import contextlib
from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.mail import message_ids
from postroad.model.mail import send_request, statuses
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.services.messages import lookup, previews, queue_changes
from postroad.storage.mail import messages
from postroad.web import routing
from postroad_resend import attachment_paths, payload

DEFAULT_LIMIT: Final = 20
# Our lists are read from the newest message on, so a page before a message is found by reading all newer ones.
MAX_NEWER: Final = 1_000
_BATCH_RECEIPT: Final = msgspec.json.Decoder(send_request.BatchReceipt)
# The last event of a message, by the status of its recipient that says most about it.
_EVENTS: Final = {
    statuses.RecipientStatus.BOUNCED: "bounced",
    statuses.RecipientStatus.FAILED: "failed",
    statuses.RecipientStatus.EXPIRED: "failed",
    statuses.RecipientStatus.DEFERRED: "delivery_delayed",
    statuses.RecipientStatus.QUEUED: "queued",
    statuses.RecipientStatus.CANCELED: "canceled",
    statuses.RecipientStatus.DELIVERED: "delivered",
}


class Page(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of a list."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    after: str | None = None
    before: str | None = None

    @property
    def rows(self) -> int:
        """How many to return. Raises InvalidRequest for `before`: all lists but that of emails are read forwards."""
        if self.before is not None:
            raise payload.unsupported("before")
        return self.limit or DEFAULT_LIMIT


class Reschedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another time. Resend's Python package repeats the id, which is in the path."""

    scheduled_at: str
    id: Any = None


async def send(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept a message."""
    async with attachment_paths.fetched(ctx, request.caller.account_id, [request.body]) as (email,):
        accepted, fields = await extension_api.send(ctx, request, _translated(email, now=ctx.clock()))
    return extension_api.respond({"id": accepted.message_id}, headers=fields, is_accepted=True)


def _translated(email: payload.Email | errors.InvalidRequest, *, now: int) -> send_request.SendRequest:
    if isinstance(email, errors.InvalidRequest):
        raise email
    return payload.translate(email, now=now)


def _read(_: int, document: object) -> payload.Email | errors.InvalidRequest:
    try:
        return payload.read(document)
    except errors.InvalidRequest as refusal:
        return refusal


async def send_batch(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Accept several messages: all or none, unless `x-batch-validation` is `permissive`."""
    if not 1 <= len(request.body) <= send_request.MAX_EMAILS:
        raise errors.InvalidRequest(f"body: {len(request.body)} emails; send 1 to {send_request.MAX_EMAILS}")
    permissive = _is_permissive(request.headers)
    read = await extension_api.read_each(ctx, request.caller.account_id, request.body, _read)
    good = [item for item in read if isinstance(item, payload.Email)]
    async with attachment_paths.fetched(ctx, request.caller.account_id, good) as fetched:
        whole = iter(fetched)
        complete = [next(whole) if isinstance(item, payload.Email) else item for item in read]
        return await _send_all(ctx, request, complete, permissive=permissive)


async def _send_all(
    ctx: context.Context,
    request: routing.Request,
    read: Sequence[payload.Email | errors.InvalidRequest],
    *,
    permissive: bool,
) -> routing.Response:
    now = ctx.clock()

    def translate(_: int, item: payload.Email | errors.InvalidRequest) -> send_request.SendRequest | str:
        try:
            return _translated(item, now=now)
        except errors.InvalidRequest as refusal:
            return refusal.message

    translated = await extension_api.read_each(ctx, request.caller.account_id, read, translate)
    made = {place: item for place, item in enumerate(translated) if not isinstance(item, str)}
    refused = {place: item for place, item in enumerate(translated) if isinstance(item, str)}
    if refused and not permissive:
        place, message = next(iter(refused.items()))
        raise errors.InvalidRequest(f"emails[{place}]: {message}")
    ids: list[str] = []
    fields: extension_api.Fields = ()
    if made:
        accepted, fields = await extension_api.send_batch(
            ctx, request, tuple(made.values()), all_or_nothing=not permissive
        )
        for place, result in zip(made, _BATCH_RECEIPT.decode(accepted.response).results, strict=True):
            if isinstance(result.error, send_request.ItemError):
                refused[place] = result.error.message
            elif isinstance(result.id, str):
                ids.append(result.id)
    body: dict[str, object] = {"data": [{"id": message_id} for message_id in ids]}
    if permissive:
        body["errors"] = [{"index": place, "message": message} for place, message in sorted(refused.items())]
    return extension_api.respond(body, headers=fields, is_accepted=bool(ids))


def _is_permissive(headers: routing.Headers) -> bool:
    mode = headers.get(b"x-batch-validation") or b"strict"
    if mode not in (b"strict", b"permissive"):
        raise errors.InvalidRequest("x-batch-validation: must be strict or permissive")
    return mode == b"permissive"


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List messages, newest first."""
    query: Page = request.query
    account_id = request.caller.account_id
    filters = lookup.Filters(mode=statuses.Mode.TEST if request.caller.is_test else statuses.Mode.LIVE)
    if query.before is None:
        page = await lookup.page(ctx, account_id, filters, limit=query.rows, cursor=query.after)
        found, has_more = page.messages, page.next_cursor is not None
    else:
        found, has_more = await _page_before(ctx, account_id, filters, query)
    return extension_api.respond(
        {"object": "list", "has_more": has_more, "data": await _summaries(ctx, account_id, found)}
    )


async def _page_before(
    ctx: context.Context, account_id: str, filters: lookup.Filters, query: Page
) -> tuple[list[messages.Message], bool]:
    """The messages that are just newer than one, newest first, and whether there are more that are newer still."""
    before = identifiers.check("before", query.before or "", identifiers.MESSAGE)
    if query.after is not None:
        raise errors.InvalidRequest("before: cannot be combined with after; use one of them")
    since = msgspec.structs.replace(filters, after=identifiers.time_of(before, identifiers.MESSAGE))
    page = await lookup.page(ctx, account_id, since, limit=MAX_NEWER, cursor=None)
    if page.next_cursor is not None:
        raise errors.InvalidRequest(
            f"before: more than {MAX_NEWER} messages are newer than this one; begin with the newest, and use after"
        )
    newer = [row for row in page.messages if row.id > before]
    limit = query.limit or DEFAULT_LIMIT
    return newer[-limit:], len(newer) > limit


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A message with its content, as long as that is retained."""
    account_id, message_id = request.caller.account_id, request.path["id"]
    await lookup.check_mode(ctx, request.caller, message_id)
    found = await lookup.details(ctx, account_id, message_id)
    text = html = None
    with contextlib.suppress(errors.NotFound):
        preview = await previews.of_message(ctx, account_id, message_id)
        text, html = preview.text, preview.html
    metadata = {} if found.receipt.metadata is msgspec.UNSET else found.receipt.metadata
    (summary,) = await _summaries(ctx, account_id, [found.message])
    shown = {
        "object": "email",
        **summary,
        "html": html,
        "text": text,
        "tags": [{"name": name, "value": value} for name, value in metadata.items()],
    }
    return extension_api.respond(shown)


async def _summaries(ctx: context.Context, account_id: str, rows: Sequence[messages.Message]) -> list[dict[str, Any]]:
    """Messages as a list shows them."""
    receipts = await lookup.receipts(ctx, account_id, rows)
    sent = [message_ids.Sent(account_id, row.id, row.source, address.parse(row.sender).domain) for row in rows]
    async with ctx.store.scanning(account_id) as tx:
        fields = await message_ids.find(tx, sent)
        leading = await messages.leading_recipients(tx, account_id, [row.id for row in rows])
    return [
        _summary(row, receipts[row.id], message_id=fields[row.id], status=leading[row.id].status, now=ctx.clock())
        for row in rows
    ]


def _summary(
    row: messages.Message, accepted: send_request.Receipt, *, message_id: str | None, status: str, now: int
) -> dict[str, Any]:
    is_scheduled = row.send_at is not None and row.send_at > now and row.status == statuses.MessageStatus.QUEUED
    return {
        "id": row.id,
        "message_id": message_id,
        "to": list(accepted.to),
        "from": row.sender,
        "created_at": times.to_wire(row.created_at),
        "subject": row.subject,
        "bcc": list(accepted.bcc),
        "cc": list(accepted.cc),
        "reply_to": list(accepted.reply_to_addresses),
        "last_event": "scheduled" if is_scheduled else _EVENTS[statuses.RecipientStatus(status)],
        "scheduled_at": times.optional_to_wire(row.send_at),
    }


async def update(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send a scheduled message at another time."""
    body: Reschedule = request.body
    message_id = request.path["id"]
    _count_change(ctx, request.caller)
    await lookup.check_change(ctx, request.caller, message_id)
    send_at = payload.parse_scheduled_at(body.scheduled_at, now=ctx.clock())
    await queue_changes.reschedule(ctx, request.caller.account_id, message_id, send_at)
    return extension_api.respond({"object": "email", "id": message_id})


async def cancel(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Cancel a message of which nothing was sent yet."""
    message_id = request.path["id"]
    _count_change(ctx, request.caller)
    await lookup.check_change(ctx, request.caller, message_id)
    after = await queue_changes.cancel_message(ctx, request.caller.account_id, message_id)
    if not any(recipient.status == statuses.RecipientStatus.CANCELED for recipient in after):
        raise errors.Conflict("no recipient of this email could be canceled: delivery has begun or is over")
    return extension_api.respond({"object": "email", "id": message_id})


def _count_change(ctx: context.Context, who: callers.Caller) -> None:
    """The same bound as for changes over our own API."""
    ctx.rate_limiter.take(f"changes {who.account_id}", now=ctx.clock())


_SENDING: Final[dict[str, Any]] = {
    "permission": callers.Permission.SEND,
    "body_limit": routing.MAX_SEND_BODY_BYTES,
    "idempotent": True,
    "key_required": False,
}
ROUTES: Final = (
    extension_api.route("POST /emails", send, body=payload.Email, **_SENDING),
    extension_api.route("POST /emails/batch", send_batch, body=list, **_SENDING),
    extension_api.route(
        "GET /emails", index, query=Page, permission=callers.Permission.CONTENT, scope=callers.Scope.READ
    ),
    extension_api.route("GET /emails/metrics", extension_api.refuse, scope=callers.Scope.READ),
    extension_api.route("GET /emails/{id}", show, permission=callers.Permission.CONTENT, scope=callers.Scope.READ),
    extension_api.route("PATCH /emails/{id}", update, permission=callers.Permission.SEND, body=Reschedule),
    extension_api.route("POST /emails/{id}/cancel", cancel, permission=callers.Permission.SEND),
)
