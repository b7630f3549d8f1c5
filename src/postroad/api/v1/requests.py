"""`/v1/requests`: refused and failed requests of the account, and changes by its keys."""

from typing import Annotated, Final

import msgspec

from postroad import context
from postroad.api.v1 import resource
from postroad.model.units import identifiers, times
from postroad.services import request_log
from postroad.storage.people import request_log as stored
from postroad.web import routing

RESOURCE: Final = resource.Resource("Requests", {"id": identifiers.pattern(identifiers.REQUEST)})
LogPosition = Annotated[
    str, resource.id_of(identifiers.REQUEST, "`next_before` of the previous page; absent for the newest requests.")
]


class RequestCaller(msgspec.Struct, frozen=True):
    """Who sent it: an API key, an SMTP credential or a user."""

    kind: request_log.CallerKind
    id: str
    name: Annotated[
        str | None, msgspec.Meta(description="The name of the key or credential, or the user's email; null if removed.")
    ]


class LoggedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request and how it was answered."""

    id: Annotated[str, msgspec.Meta(description="The `X-Request-ID` of its response.")]
    at: times.WireTime
    method: str
    path: Annotated[str, msgspec.Meta(description="Without the query.")]
    status: Annotated[int, msgspec.Meta(description="The HTTP status of the response.")]
    code: Annotated[str | None, msgspec.Meta(description="The error code; null if it succeeded.")]
    error: Annotated[str | None, msgspec.Meta(description="The error message; null if it succeeded.")]
    caller: RequestCaller
    client_address: str
    body_size: Annotated[int, msgspec.Meta(description="Size of the body in bytes.")]
    skipped: Annotated[
        int, msgspec.Meta(description="Requests after this one that are not listed, because too many came at once.")
    ]


class LoggedRequestDetails(LoggedRequest, frozen=True, kw_only=True):
    """A request with its body."""

    body: Annotated[
        str | None,
        msgspec.Meta(
            description="The beginning of a JSON body, with secrets masked and long texts cut; null for any other, and "
            "for callers who may not see content."
        ),
    ]


class RequestsQuery(resource.PageQuery, frozen=True):
    """Filters and pagination of the requests."""

    before: LogPosition | None = None
    status: (
        Annotated[
            request_log.Status,
            msgspec.Meta(description="`refused` is 4xx, `failed` is 5xx, `succeeded` is a change by a key."),
        ]
        | None
    ) = None
    caller: (
        Annotated[str, msgspec.Meta(max_length=100, description="The id of an API key, SMTP credential or user.")]
        | None
    ) = None
    since: (
        Annotated[resource.Timestamp, msgspec.Meta(description="Requests at this time (RFC 3339) or later.")] | None
    ) = None
    until: Annotated[resource.Timestamp, msgspec.Meta(description="Requests before this time (RFC 3339).")] | None = (
        None
    )


class RequestsResponse(resource.Response, frozen=True):
    """Requests, newest first."""

    requests: list[LoggedRequest]
    next_before: resource.NextBefore


class LoggedRequestResponse(resource.Response, frozen=True):
    """One request."""

    request: LoggedRequestDetails


def _shown(row: stored.NamedEntry) -> LoggedRequest:
    return resource.from_record(
        LoggedRequest,
        row,
        at=times.to_wire(row.created_at),
        code=row.code or None,
        error=row.error or None,
        caller=RequestCaller(request_log.kind_of(row), row.caller_id, row.caller or None),
    )


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List refused and failed requests, and changes by keys.

    Of the last 7 days, newest first, without their bodies. Accepted messages are not among them.
    """
    query: RequestsQuery = request.query
    filters = request_log.Filters(
        status=query.status,
        caller_id=query.caller or "",
        since=None if query.since is None else resource.parse_timestamp("since", query.since),
        until=None if query.until is None else resource.parse_timestamp("until", query.until),
    )
    found = await request_log.page(ctx, request.caller.account_id, filters, before=query.before, limit=query.rows)
    listed = [_shown(row) for row in found.rows]
    return routing.Response(200, RequestsResponse(listed, found.next_cursor, request_id=request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a request.

    With its body, for callers who may see content; an API key also needs the scope `read`.
    """
    found = await request_log.find(ctx, request.caller.account_id, request.path["id"])
    body = found.body.decode() or None if request_log.sees_body(request.caller) else None
    shown = LoggedRequestDetails(**msgspec.structs.asdict(_shown(found)), body=body)
    return routing.Response(200, LoggedRequestResponse(shown, request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/requests", index, query=RequestsQuery, responses={200: RequestsResponse}),
    RESOURCE.route("GET /v1/requests/{id}", show, responses={200: LoggedRequestResponse}),
)
