"""`/message-streams/{stream}/suppressions`: the suppression list of the account, which all streams have in common."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.model.people import callers
from postroad.model.units import times
from postroad.protocol.mime import address
from postroad.services.suppressions import suppression_list
from postroad.storage.mail import suppressions as stored
from postroad.web import routing
from postroad_postmark import days, schemas

# Postmark's own limit.
MAX_ADDRESSES: Final = 50
_PAGE: Final = 500
_NOT_LISTED: Final = "the address is not on the suppression list of this account"
# The reasons and origins of Postmark by our sources.
REASONS: Final = {
    stored.Source.BOUNCE: ("HardBounce", "Recipient"),
    stored.Source.LATE_BOUNCE: ("HardBounce", "Recipient"),
    stored.Source.COMPLAINT: ("SpamComplaint", "Recipient"),
    stored.Source.OPERATOR: ("ManualSuppression", "Admin"),
    stored.Source.ACCOUNT: ("ManualSuppression", "Customer"),
    stored.Source.IMPORT: ("ManualSuppression", "Customer"),
}


class DumpQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Filters of the list, in the spellings of Postmark's packages and of its documentation.

    Packages send the page that they ask other lists for; this one is always sent whole, as Postmark does.
    """

    reason: str | None = msgspec.field(name="SuppressionReason", default=None)
    origin: str | None = msgspec.field(name="Origin", default=None)
    email: str | None = msgspec.field(name="EmailAddress", default=None)
    fromdate: str | None = None
    todate: str | None = None
    count: schemas.Count | None = None
    offset: schemas.Offset | None = None


class Address(schemas.Body, frozen=True):
    """An address of a change."""

    email_address: str


class Addresses(schemas.Body, frozen=True):
    """The addresses of a change."""

    suppressions: tuple[Address, ...]


async def dump(ctx: context.Context, request: routing.Request) -> routing.Response:
    """The whole list, which can be long: it is read and sent page by page."""
    query: DumpQuery = request.query
    begin = days.begin("fromdate", query.fromdate or None) or 0
    end = days.end("todate", query.todate or None)
    wanted = {"SuppressionReason": query.reason, "Origin": query.origin}

    def entries(page: list[stored.Suppression]) -> bytes:
        shown = [
            _suppression(suppression)
            for suppression in page
            if begin <= suppression.created_at and (end is None or suppression.created_at < end)
        ]
        kept = [entry for entry in shown if all(entry[name] == value for name, value in wanted.items() if value)]
        return msgspec.json.encode(kept)[1:-1]

    pages = _one(ctx, request, query.email) if query.email else _pages(ctx, request)
    return routing.Response(200, _streamed(pages, entries))


async def _pages(ctx: context.Context, request: routing.Request) -> AsyncGenerator[list[stored.Suppression], None]:
    after = ""
    while page := await suppression_list.page(ctx, request.caller.account_id, after=after, limit=_PAGE):
        yield page
        after = page[-1].email_key


async def _one(
    ctx: context.Context, request: routing.Request, email: str
) -> AsyncGenerator[list[stored.Suppression], None]:
    with contextlib.suppress(errors.NotFound):
        yield [await suppression_list.find(ctx, request.caller.account_id, email)]


async def _streamed(
    pages: AsyncGenerator[list[stored.Suppression], None], entries: Callable[[list[stored.Suppression]], bytes]
) -> routing.Parts:
    """The JSON of the list; a page may have none of the entries that are wanted."""
    before = b'{"Suppressions":['
    async for page in pages:
        part = entries(page)
        if part:
            yield before + part
            before = b","
    yield b"]}" if before == b"," else before + b"]}"


def _suppression(suppression: stored.Suppression) -> dict[str, Any]:
    reason, origin = REASONS[stored.Source(suppression.source)]
    return {
        "EmailAddress": suppression.email_key,
        "SuppressionReason": reason,
        "Origin": origin,
        "CreatedAt": times.to_wire(suppression.created_at),
    }


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Add addresses."""
    given = _emails(request.body)
    problems = {email: problem for email in given if (problem := _problem(email)) is not None}
    good = [email for email in given if email not in problems]
    if good:
        await suppression_list.add_many(ctx, request.caller.account_id, good, reason="added over the API")
    return extension_api.respond(
        {
            "Suppressions": [
                _result(email, "Failed", problems[email]) if email in problems else _result(email, "Suppressed")
                for email in given
            ]
        }
    )


def _problem(email: str) -> str | None:
    try:
        address.parse(email)
    except address.AddressError as problem:
        return f"email: {problem}"
    return None


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove addresses."""
    given = _emails(request.body)
    removed = await suppression_list.remove_many(ctx, request.caller.account_id, given)
    return extension_api.respond(
        {
            "Suppressions": [
                _result(email, "Deleted") if key is not None else _result(email, "Failed", _NOT_LISTED)
                for email, key in zip(given, removed, strict=True)
            ]
        }
    )


def _emails(body: Addresses) -> list[str]:
    if len(body.suppressions) > MAX_ADDRESSES:
        raise errors.InvalidRequest(f"Suppressions: at most {MAX_ADDRESSES} addresses in a request")
    return [suppression.email_address for suppression in body.suppressions]


def _result(email: str, status: str, message: str | None = None) -> dict[str, str | None]:
    return {"EmailAddress": email, "Status": status, "Message": message}


_PATH: Final = "/message-streams/{stream}/suppressions"
_SCOPE: Final = callers.Scope.SUPPRESSIONS
ROUTES: Final = (
    extension_api.route(f"GET {_PATH}/dump", dump, query=DumpQuery, scope=_SCOPE),
    extension_api.route(f"POST {_PATH}", create, body=Addresses, scope=_SCOPE),
    extension_api.route(f"POST {_PATH}/delete", remove, body=Addresses, scope=_SCOPE),
)
