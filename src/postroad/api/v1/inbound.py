"""`/v1/inbound`: the routes that receive mail for the account, and the mail that they received."""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import messages, resource
from postroad.model.domains import domain_records
from postroad.model.events import events
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.protocol.mime import address
from postroad.services.inbound import received, routes
from postroad.services.messages import previews
from postroad.storage.mail import received as stored
from postroad.web import routing

# What tools can generate from; the rest is checked (services/inbound/routes.py).
MATCH_PATTERN: Final = messages.ADDRESS_PATTERN.replace(
    messages.ADDRESS_PATTERN.partition("@")[0], r"^(?:\*|[A-Za-z0-9](?:[.\-_]?[A-Za-z0-9]){0,31}(?:\+\*)?)"
)
RESOURCE: Final = resource.Resource("Inbound", {"id": identifiers.pattern(identifiers.RECEIVED)})
ROUTE_RESOURCE: Final = resource.Resource("Inbound", {"id": identifiers.pattern(identifiers.INBOUND_ROUTE)})


class NewRoute(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which mail to receive, and what to do with it."""

    match: Annotated[
        str,
        msgspec.Meta(
            description="`support@in.example.com`, `support+*@in.example.com` for it and its +tags, or "
            "`*@in.example.com`. The domain is one of your verified domains, or below one.",
            max_length=address.MAX_CHARACTERS,
            extra_json_schema={"pattern": MATCH_PATTERN},
        ),
    ]
    action: (
        Annotated[
            stored.Action,
            msgspec.Meta(description="`forward` by default if there is a `forward_to`, otherwise `store`."),
        ]
        | None
    ) = None
    forward_to: (
        Annotated[
            str,
            msgspec.Meta(
                description="A user of this account, or an address at one of your verified domains.",
                max_length=address.MAX_CHARACTERS,
                extra_json_schema={"pattern": messages.ADDRESS_PATTERN},
            ),
        ]
        | None
    ) = None


class Route(msgspec.Struct, frozen=True):
    """A route. If several match an address, the most specific `match` is used."""

    id: str
    match: str
    action: stored.Action
    forward_to: str | None
    created_at: times.WireTime


class RouteResponse(resource.Response, frozen=True):
    """One route."""

    route: Route


class MxRecord(msgspec.Struct, frozen=True):
    """The MX record that the domain of a route needs, and what DNS has."""

    name: Annotated[str, msgspec.Meta(description="The record name, without a trailing dot.")]
    value: Annotated[
        str | None, msgspec.Meta(description="The expected value. Null when `delivery.hostname` is not configured.")
    ]
    state: domain_records.RecordState
    detail: Annotated[str, msgspec.Meta(description="What was found, and what to do.")]


class RouteCheckResponse(resource.Response, frozen=True):
    """A route, and the MX record that it needs."""

    route: Route
    mx: MxRecord


class RoutesQuery(resource.PageQuery, frozen=True):
    """Pagination of the list."""

    cursor: Annotated[str, resource.cursor_of(identifiers.pattern(identifiers.INBOUND_ROUTE))] | None = None


class RoutesResponse(resource.Response, frozen=True):
    """Routes, oldest first."""

    routes: list[Route]
    next_cursor: resource.NextCursor


def _route(row: stored.Route) -> Route:
    return resource.from_record(Route, row, match=row.match_key)


async def list_routes(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List inbound routes.

    Oldest first.
    """
    query: RoutesQuery = request.query
    after = identifiers.after(query.cursor, identifiers.INBOUND_ROUTE)
    found = await routes.of_account(ctx, request.caller.account_id, after=after, limit=query.rows + 1)
    rows, following = identifiers.page(found, limit=query.rows)
    return routing.Response(200, RoutesResponse([*map(_route, rows)], following, request_id=request.id))


async def create_route(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create an inbound route.

    Mail to an address without a route is refused. Then check the route, and publish the MX record that the check names.
    """
    body: NewRoute = request.body
    made = await routes.add(ctx, request.caller.account_id, body.match, action=body.action, forward_to=body.forward_to)
    return routing.Response(201, RouteResponse(_route(made), request_id=request.id))


async def show_route(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get an inbound route.

    With what happens to its mail.
    """
    found = await routes.find(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(200, RouteResponse(_route(found), request_id=request.id))


async def check_route(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Check the MX record of an inbound route.

    Queries DNS immediately: whether mail for the domain of the route arrives here, and what to publish.
    """
    checked = await routes.check(ctx, request.caller.account_id, request.path["id"])
    mx = resource.from_record(MxRecord, checked)
    return routing.Response(200, RouteCheckResponse(_route(checked.route), mx, request_id=request.id))


async def remove_route(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Delete an inbound route.

    New mail to it is refused; mail that it received stays.
    """
    await routes.remove(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(204)


class ReceivedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A received message in the list."""

    id: str
    route_id: Annotated[str, msgspec.Meta(description="The route that received it; it may have been deleted.")]
    recipient: Annotated[str, msgspec.Meta(description="The envelope recipient.")] = msgspec.field(name="to")
    sender: Annotated[str, msgspec.Meta(description="The From field, with the name.")] = msgspec.field(name="from")
    envelope_sender: Annotated[str, msgspec.Meta(description="The envelope sender; empty for the null sender.")] = (
        msgspec.field(name="envelope_from")
    )
    subject: str
    email_id: Annotated[str | None, msgspec.Meta(description="The message of yours that it replies to.")]
    size: int
    attachment_count: int
    received_at: times.WireTime


class ReceivedQuery(resource.PageQuery, frozen=True):
    """Filters and pagination of the list."""

    route: Annotated[str, resource.id_of(identifiers.INBOUND_ROUTE, "Only mail that this route received.")] | None = (
        None
    )
    search: (
        Annotated[
            str,
            msgspec.Meta(
                description="Only mail with this text in its From field or its subject, case-insensitive.",
                max_length=received.SEARCH_CHARACTERS,
            ),
        ]
        | None
    ) = None
    cursor: Annotated[str, resource.cursor_of(identifiers.pattern(identifiers.RECEIVED))] | None = None


class ReceivedListResponse(resource.Response, frozen=True):
    """Received mail, newest first."""

    messages: list[ReceivedSummary]
    next_cursor: resource.NextCursor


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List received mail.

    Newest first, without its content.
    """
    query: ReceivedQuery = request.query
    found = await received.page(
        ctx,
        request.caller.account_id,
        limit=query.rows,
        cursor=query.cursor,
        route_id=query.route,
        search=query.search or "",
    )
    listed = [resource.from_record(ReceivedSummary, row) for row in found.rows]
    return routing.Response(200, ReceivedListResponse(listed, found.next_cursor, request_id=request.id))


class ReceivedResponse(resource.Response, frozen=True):
    """One message, with the members of its event."""

    message: events.ReceivedData


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a received message.

    With the members of its event `email.received`, and new URLs for its attachments. Also not found when the
    content is no longer retained.
    """
    shown = await received.view(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(200, ReceivedResponse(shown, request_id=request.id))


async def show_raw(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Download a received message unchanged.

    Also not found when the content is no longer retained.
    """
    begun = await received.begin_raw(ctx, request.caller.account_id, request.path["id"])
    return routing.attachment(begun.filename, begun.body, content_type=received.RAW_TYPE, length=begun.size)


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Delete a received message.

    With its content and its attachments.
    """
    await received.remove(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(204)


async def download_file(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Download an attachment of a received message.

    By the `url` in the event or in the message. The URL needs no credential, and expires.
    """
    begun = await received.begin_file(ctx, request.path["token"])
    return routing.Response(
        200,
        begun.body,
        headers=previews.download_headers(begun.filename),
        content_type=begun.content_type,
        length=begun.size,
    )


# Routes belong to a sender domain.
_OF_DOMAINS: Final = callers.Scope.DOMAINS

ROUTES: Final = (
    ROUTE_RESOURCE.route(
        "GET /v1/inbound/routes",
        list_routes,
        scope=_OF_DOMAINS,
        query=RoutesQuery,
        responses={200: RoutesResponse},
    ),
    ROUTE_RESOURCE.route(
        "POST /v1/inbound/routes",
        create_route,
        scope=_OF_DOMAINS,
        body=NewRoute,
        body_rules={"examples": [{"match": "support+*@in.example.com"}]},
        responses={201: RouteResponse},
        errors=(errors.Conflict,),
    ),
    ROUTE_RESOURCE.route("GET /v1/inbound/routes/{id}", show_route, scope=_OF_DOMAINS, responses={200: RouteResponse}),
    ROUTE_RESOURCE.route("DELETE /v1/inbound/routes/{id}", remove_route, scope=_OF_DOMAINS, responses={204: None}),
    ROUTE_RESOURCE.route(
        "POST /v1/inbound/routes/{id}/check",
        check_route,
        scope=_OF_DOMAINS,
        responses={200: RouteCheckResponse},
        errors=(errors.RateLimited,),
    ),
    RESOURCE.route(
        "GET /v1/inbound",
        index,
        permission=callers.Permission.CONTENT,
        query=ReceivedQuery,
        responses={200: ReceivedListResponse},
    ),
    RESOURCE.route(
        "GET /v1/inbound/{id}",
        show,
        permission=callers.Permission.CONTENT,
        responses={200: ReceivedResponse},
    ),
    RESOURCE.route("DELETE /v1/inbound/{id}", remove, scope=_OF_DOMAINS, responses={204: None}),
    RESOURCE.download(
        "GET /v1/inbound/{id}/raw",
        show_raw,
        content_type=received.RAW_TYPE,
        permission=callers.Permission.CONTENT,
        errors=(errors.RateLimited,),
    ),
    RESOURCE.download(
        "GET /v1/inbound/attachments/{token}",
        download_file,
        content_type=previews.DOWNLOAD_TYPE,
        permission=None,
        errors=(errors.RateLimited,),
    ),
)
