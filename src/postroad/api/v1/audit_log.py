"""`/v1/audit-log`: who did what in the account."""

from typing import Annotated, Final, Literal, TypeVar

import msgspec

from postroad import context
from postroad.api.v1 import resource
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services import audit_log
from postroad.storage.people import audit_log as stored
from postroad.web import routing

RESOURCE: Final = resource.Resource("Audit log")
LogPosition = Annotated[
    str, resource.id_of(identifiers.AUDIT_ENTRY, "`next_before` of the previous page; absent for the newest entries.")
]


class Actor(msgspec.Struct, frozen=True):
    """Who did it: a user, an API key, the operator of the installation, or the service itself."""

    kind: Literal["person", "api_key", "operator", "service"]
    id: Annotated[
        str | None, msgspec.Meta(description="The id of the user or the key, who may have been removed since.")
    ]
    name: Annotated[
        str, msgspec.Meta(description="The user's email or the key's name at that time, or `operator` or `postroad`.")
    ]


class AuditLogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An action in the account."""

    id: str
    at: times.WireTime
    actor: Actor
    action: Annotated[str, msgspec.Meta(description="The action, such as `domain.added`.")]
    subject: Annotated[str, msgspec.Meta(description="The name of the object.")]
    detail: str
    text: Annotated[str, msgspec.Meta(description="The action as a sentence, to follow the actor's name.")]
    request_id: Annotated[str | None, msgspec.Meta(description="The request that caused it; null when there was none.")]
    client_address: Annotated[
        str | None, msgspec.Meta(description="The client's IP address; null when there was none.")
    ]


EntryT = TypeVar("EntryT", bound=AuditLogEntry)


class AuditLogQuery(resource.PageQuery, frozen=True):
    """Filters and pagination of the audit log. Without regard to case."""

    before: LogPosition | None = None
    actor: Annotated[str, msgspec.Meta(max_length=200, description="Part of the actor's name.")] | None = None
    action: (
        Annotated[
            str, msgspec.Meta(max_length=100, description="An action such as `domain.added`, or a group: `domain`.")
        ]
        | None
    ) = None
    subject: Annotated[str, msgspec.Meta(max_length=200, description="Part of the subject.")] | None = None
    since: (
        Annotated[resource.Timestamp, msgspec.Meta(description="Entries at this time (RFC 3339) or later.")] | None
    ) = None
    until: Annotated[resource.Timestamp, msgspec.Meta(description="Entries before this time (RFC 3339).")] | None = None


class AuditLogResponse(resource.Response, frozen=True):
    """Audit log entries, newest first."""

    entries: list[AuditLogEntry]
    next_before: resource.NextBefore


def shown(kind: type[EntryT], row: stored.Entry, /, **more: str | None) -> EntryT:
    """An entry; a schema with further members gets them too."""
    return resource.from_record(
        kind,
        row,
        at=times.to_wire(row.created_at),
        actor=Actor(callers.ActorKind(row.actor_kind).value, row.user_id, row.actor),
        text=audit_log.text(row),
        request_id=row.request_id or None,
        client_address=row.client_address or None,
        **more,
    )


def filters_of(query: AuditLogQuery) -> audit_log.Filters:
    """What a query asks for."""
    return audit_log.Filters(
        actor=query.actor or "",
        action=query.action or "",
        subject=query.subject or "",
        since=None if query.since is None else resource.parse_timestamp("since", query.since),
        until=None if query.until is None else resource.parse_timestamp("until", query.until),
    )


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List audit log entries.

    Newest first. A page of a filtered list may have fewer entries than asked for, or none, before its end: continue
    until `next_before` is null.
    """
    query: AuditLogQuery = request.query
    found = await audit_log.search(
        ctx, request.caller.account_id, filters_of(query), before=query.before, limit=query.rows
    )
    entries = [shown(AuditLogEntry, row) for row in found.rows]
    return routing.Response(200, AuditLogResponse(entries, found.next_cursor, request_id=request.id))


ROUTES: Final = (RESOURCE.route("GET /v1/audit-log", index, query=AuditLogQuery, responses={200: AuditLogResponse}),)
