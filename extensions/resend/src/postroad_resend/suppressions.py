"""Resend's suppressions: add, list, get and remove, one or many. The address is the id."""

from typing import Annotated, Any, Final, Literal

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.services.suppressions import suppression_list
from postroad.storage.mail import suppressions as stored
from postroad.web import routing
from postroad_resend import emails as resend_emails

MAX_BATCH: Final = 100
Source = stored.Source
# Where Resend knows three origins, we know more.
ORIGINS: Final = {
    "bounce": (Source.BOUNCE, Source.LATE_BOUNCE),
    "complaint": (Source.COMPLAINT,),
    "manual": (Source.OPERATOR, Source.ACCOUNT, Source.IMPORT),
}
_ORIGIN_OF: Final = {source: origin for origin, sources in ORIGINS.items() for source in sources}


class Page(resend_emails.Page, frozen=True, forbid_unknown_fields=True):
    """Which part of the list; `after` is an address."""

    origin: Literal["bounce", "complaint", "manual"] | None = None


class NewSuppression(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address to suppress."""

    email: str


_Many = Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_BATCH)]


class NewSuppressions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses to suppress."""

    emails: _Many


class Removals(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses to remove, by either name."""

    emails: _Many | None = None
    ids: _Many | None = None


async def add(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Suppress an address; one that is on the list stays as it is."""
    body: NewSuppression = request.body
    (added,) = await _add(ctx, request, [body.email])
    return extension_api.respond(added, status=201)


async def add_many(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Suppress several addresses, or none when one of them is not an address."""
    body: NewSuppressions = request.body
    for place, email in enumerate(body.emails):
        try:
            address.parse(email)
        except address.AddressError as problem:
            raise errors.InvalidRequest(f"emails[{place}]: {problem}") from None
    return extension_api.respond({"data": await _add(ctx, request, body.emails)}, status=201)


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List suppressed addresses in alphabetical order."""
    query: Page = request.query
    sources: tuple[Source | None, ...] = (None,) if query.origin is None else ORIGINS[query.origin]
    found: list[stored.Suppression] = []
    for source in sources:
        found += await suppression_list.page(
            ctx, request.caller.account_id, after=query.after or "", limit=query.rows + 1, source=source
        )
    found.sort(key=lambda row: row.email_key)
    rows, following = identifiers.page(found, limit=query.rows, key="email_key")
    return extension_api.respond(
        {"object": "list", "has_more": following is not None, "data": [_shown(row) for row in rows]}
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a suppressed address."""
    row = await suppression_list.find(ctx, request.caller.account_id, request.path["email"])
    return extension_api.respond({"object": "suppression", **_shown(row)})


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove an address from the list."""
    removed = await suppression_list.remove(ctx, request.caller.account_id, request.path["email"])
    return extension_api.respond({"object": "suppression", "id": removed, "deleted": True})


async def remove_many(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove several addresses; `deleted` says which of them were on the list."""
    body: Removals = request.body
    if (body.emails is None) == (body.ids is None):
        raise errors.InvalidRequest("emails: give either emails or ids")
    emails = body.emails or body.ids or []
    removed = await suppression_list.remove_many(ctx, request.caller.account_id, emails)
    results = [
        {"object": "suppression", "id": email, "deleted": key is not None}
        for email, key in zip(emails, removed, strict=True)
    ]
    return extension_api.respond({"data": results})


async def _add(ctx: context.Context, request: routing.Request, emails: list[str]) -> list[dict[str, Any]]:
    added = await suppression_list.add_many(ctx, request.caller.account_id, emails)
    return [{"object": "suppression", "id": row.email_key} for row, _ in added]


def _shown(row: stored.Suppression) -> dict[str, Any]:
    return {
        "id": row.email_key,
        "email": row.email_key,
        "origin": _ORIGIN_OF[Source(row.source)],
        "source_id": row.message_id,
        "created_at": times.to_wire(row.created_at),
    }


def _route(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> extension_api.Route:
    return extension_api.route(endpoint, handler, scope=callers.Scope.SUPPRESSIONS, **options)


ROUTES: Final = (
    _route("POST /suppressions", add, body=NewSuppression),
    _route("POST /suppressions/batch/add", add_many, body=NewSuppressions),
    _route("POST /suppressions/batch/remove", remove_many, body=Removals),
    _route("GET /suppressions", index, query=Page),
    _route("GET /suppressions/{email}", show),
    _route("DELETE /suppressions/{email}", remove),
)
