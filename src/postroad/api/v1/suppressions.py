"""`/v1/suppressions`: the suppression list, by address and as a CSV file."""

import re
from typing import Annotated, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api.v1 import messages, resource
from postroad.model.mail import send_request
from postroad.model.people import callers
from postroad.model.units import identifiers, labels, times
from postroad.services.suppressions import suppression_csv
from postroad.services.suppressions import suppression_list as suppressions
from postroad.storage.mail import suppressions as stored
from postroad.web import routing

CSV: Final = "text/csv"
RESOURCE: Final = resource.Resource("Suppressions", {"email": messages.ADDRESS_PATTERN})
# The address in hexadecimal, which needs no quoting in a URL.
CURSOR_PATTERN: Final = r"^(?:[0-9a-f]{2}){1,400}$"
_CURSOR: Final = re.compile(CURSOR_PATTERN.strip("^$"))

SuppressionSource = Annotated[
    Literal["bounce", "late_bounce", "complaint", "operator", "account", "import", "one_click", "page"],
    msgspec.Meta(
        title="SuppressionSource",
        description="Who added it: a bounce, an asynchronous bounce, a complaint, the operator, the "
        "account or an import; for a list also the recipient, with one click or on the unsubscribe page.",
    ),
]
Reason = Annotated[
    str,
    msgspec.Meta(
        description="The reason, shown with recipients of later messages.",
        min_length=1,
        max_length=labels.REASON_CHARACTERS,
        extra_json_schema={"pattern": labels.LABEL_PATTERN},
    ),
]


List = Annotated[
    send_request.ListName,
    msgspec.Meta(
        description="The list that the address has left: only mail of this list is not sent. Absent: all mail."
    ),
]


class Suppression(msgspec.Struct, frozen=True, kw_only=True):
    """A suppressed address, in lower case, and why it is suppressed."""

    email: str
    source: SuppressionSource
    reason: Annotated[str, msgspec.Meta(description="The server's reply, if one caused it.")]
    smtp_code: Annotated[int | None, msgspec.Meta(description="The SMTP code of that reply.")]
    message_id: Annotated[
        str | None, msgspec.Meta(description="The message that caused it; it may no longer be retained.")
    ]
    created_at: times.WireTime
    list_name: List | msgspec.UnsetType = msgspec.field(name="list", default=msgspec.UNSET)


class NewSuppression(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address to suppress."""

    email: messages.FilterAddress
    reason: Reason | None = None
    list_name: List | None = msgspec.field(name="list", default=None)


class OfList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entry of an address."""

    list_name: List | None = msgspec.field(name="list", default=None)


class SuppressionResponse(resource.Response, frozen=True):
    """One address."""

    suppression: Suppression


class SuppressionsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Filters of the list."""

    email: (
        Annotated[messages.FilterAddress, msgspec.Meta(description="Only this address, case-insensitive.")] | None
    ) = None
    source: Annotated[SuppressionSource | None, msgspec.Meta(description="Only addresses from this source.")] = None
    list_name: List | None = msgspec.field(name="list", default=None)
    limit: resource.Limit | None = identifiers.DEFAULT_LIMIT
    cursor: Annotated[str, resource.cursor_of(CURSOR_PATTERN)] | None = None


class SuppressionsResponse(resource.Response, frozen=True):
    """Suppressed addresses in alphabetical order."""

    suppressions: list[Suppression]
    next_cursor: resource.NextCursor


class ImportResponse(resource.Response, frozen=True):
    """The result of an import. `unchanged` rows were on the list already, or repeated in the file."""

    added: int
    unchanged: int


def _shown(row: stored.Suppression) -> Suppression:
    return resource.from_record(Suppression, row, email=row.email_key, list_name=row.list_name or msgspec.UNSET)


def _decode_cursor(cursor: str | None) -> str:
    """The address after which a page begins. A made-up cursor only selects a position in the caller's own list."""
    if cursor is None:
        return ""
    if not _CURSOR.fullmatch(cursor):
        raise errors.InvalidRequest("cursor: not a cursor of this list; use next_cursor of the previous page")
    return bytes.fromhex(cursor).decode(errors="replace").replace("\0", "")


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List suppressed addresses.

    In alphabetical order. With `list`, those who have left that list.
    """
    query: SuppressionsQuery = request.query
    limit, after = query.limit or identifiers.DEFAULT_LIMIT, _decode_cursor(query.cursor)
    account_id = request.caller.account_id
    if query.email is not None:
        found = await _only(ctx, account_id, query.email, query.list_name or "")
        found = [row for row in found if query.source in (None, row.source) and row.email_key > after]
    else:
        found = await suppressions.page(
            ctx, account_id, after=after, limit=limit + 1, source=query.source, list_name=query.list_name or ""
        )
    rows, last = identifiers.page(found, limit=limit, key="email_key")
    following = None if last is None else last.encode().hex()
    return routing.Response(200, SuppressionsResponse([*map(_shown, rows)], following, request_id=request.id))


async def _only(ctx: context.Context, account_id: str, email: str, list_name: str) -> list[stored.Suppression]:
    labels.parse_mailbox("email", email)
    try:
        return [await suppressions.find(ctx, account_id, email, list_name=list_name)]
    except errors.NotFound:
        return []


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Suppress an address.

    Mail to a suppressed address is accepted, and the recipient bounces without an attempt. With `list`, only mail of
    that list; no reason is kept then.
    """
    body: NewSuppression = request.body
    is_operator = ctx.actor.kind is callers.ActorKind.OPERATOR
    row, is_new = await suppressions.add(
        ctx,
        request.caller.account_id,
        body.email,
        reason=body.reason or (suppressions.BY_OPERATOR if is_operator else suppressions.BY_ACCOUNT),
        source=stored.Source.OPERATOR if is_operator else stored.Source.ACCOUNT,
        list_name=body.list_name or "",
    )
    if not is_new:
        raise errors.Conflict(f"email: {row.email_key} is already suppressed; to change the reason, remove it first")
    return routing.Response(201, SuppressionResponse(_shown(row), request_id=request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a suppressed address.

    Says since when the address is suppressed, and why.
    """
    query: OfList = request.query
    account_id, email = request.caller.account_id, request.path["email"]
    found = await suppressions.find(ctx, account_id, email, list_name=query.list_name or "")
    return routing.Response(200, SuppressionResponse(_shown(found), request_id=request.id))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove an address from the suppression list.

    Applies to new messages at once, and to queued ones from their next attempt. Remove an address that complained only
    when the recipient asks for it.
    """
    query: OfList = request.query
    account_id, email = request.caller.account_id, request.path["email"]
    await suppressions.remove(ctx, account_id, email, list_name=query.list_name or "")
    return routing.Response(204)


async def import_file(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Import suppressed addresses from CSV."""
    imported = await suppression_csv.import_csv(ctx, request.caller.account_id, request.body)
    return routing.Response(200, ImportResponse(imported.added, imported.unchanged, request_id=request.id))


async def export_file(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Download the suppression list as CSV.

    A cell that a spreadsheet would evaluate as a formula is prefixed with an apostrophe; importing a file with all
    these columns removes it again.
    """
    return routing.attachment("suppressions.csv", suppression_csv.export(ctx, request.caller.account_id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/suppressions", index, query=SuppressionsQuery, responses={200: SuppressionsResponse}),
    RESOURCE.route(
        "POST /v1/suppressions",
        create,
        body=NewSuppression,
        body_rules={"examples": [{"email": "ada@example.net", "reason": "asked to be left alone"}]},
        responses={201: SuppressionResponse},
        errors=(errors.Conflict,),
    ),
    RESOURCE.download("GET /v1/suppressions/export", export_file, content_type=CSV),
    RESOURCE.route(
        "POST /v1/suppressions/import",
        import_file,
        description=f"In UTF-8, at most {suppression_csv.MAX_ROWS} rows under a first line that names the columns, "
        "with `email` and perhaps `reason` among them; or a bare list of addresses. An export can be imported again; a "
        "longer one has to be split. When anything is wrong with the file, nothing is stored. One import at a time.",
        body=bytes,
        body_type=CSV,
        body_limit=suppression_csv.MAX_BYTES,
        body_rules={"examples": ["email,reason\r\nada@example.net,asked to be left alone\r\n"]},
        responses={200: ImportResponse},
        errors=(errors.Conflict, errors.RateLimited),
    ),
    RESOURCE.route("GET /v1/suppressions/{email}", show, query=OfList, responses={200: SuppressionResponse}),
    RESOURCE.route("DELETE /v1/suppressions/{email}", remove, query=OfList, responses={204: None}),
)
