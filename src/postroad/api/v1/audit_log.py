"""`/v1/journal`: who did what in the account."""

from typing import Annotated, Literal

import msgspec

from postroad.api.v1 import schemas
from postroad.model import actors, caller, cursors, identifiers, times
from postroad.services import audit_log, context
from postroad.storage import audit_log as stored
from postroad.web import routing


class Actor(msgspec.Struct, frozen=True):
    """Who did it: a person, the operator of the installation, or the service by itself."""

    kind: Literal["person", "operator", "service"]
    id: Annotated[str | None, msgspec.Meta(description="The person's id, who may have been removed since.")]
    name: Annotated[str, msgspec.Meta(description="The person's email as it was then; else `operator` or `postroad`.")]


class JournalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was done."""

    id: str
    at: times.WireTime
    actor: Actor
    action: Annotated[str, msgspec.Meta(description="What was done, in a word, such as `domain.added`.")]
    subject: Annotated[str, msgspec.Meta(description="What it was done to, as people call it.")]
    detail: str
    text: Annotated[str, msgspec.Meta(description="The same as a sentence; the actor's name goes before it.")]
    request_id: Annotated[str | None, msgspec.Meta(description="The request that did it; null when there was none.")]
    client_address: Annotated[str | None, msgspec.Meta(description="Where it came from; null when there was none.")]


class JournalQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the journal."""

    limit: schemas.Limit | None = cursors.DEFAULT_LIMIT
    before: (
        Annotated[
            str,
            msgspec.Meta(
                description="`next_before` of the part before; absent for the newest entries.",
                extra_json_schema={"pattern": identifiers.pattern(identifiers.AUDIT_ENTRY)},
            ),
        ]
        | None
    ) = None


class JournalResponse(msgspec.Struct, frozen=True):
    """Entries of the journal, newest first."""

    entries: list[JournalEntry]
    next_before: Annotated[
        str | None, msgspec.Meta(description="Asks for older entries as `before`; null when there are none.")
    ]
    request_id: str


def _entry(row: stored.Entry) -> JournalEntry:
    return JournalEntry(
        id=row.id,
        at=times.to_wire(row.created_at),
        actor=Actor(actors.Kind(row.actor_kind).value, row.user_id, row.actor),
        action=row.action,
        subject=row.subject,
        detail=row.detail,
        text=audit_log.text(row),
        request_id=row.request_id or None,
        client_address=row.client_address or None,
    )


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A part of the account's journal."""
    query: JournalQuery = request.query
    limit = query.limit or cursors.DEFAULT_LIMIT
    found = await audit_log.page(ctx, request.caller.account_id, before=query.before, limit=limit + 1)
    older = cursors.following([row.id for row in found], limit=limit)
    return routing.Response(200, JournalResponse([_entry(row) for row in found[:limit]], older, request.id))


ROUTES: tuple[routing.Route[context.Context], ...] = (
    routing.Route(
        method="GET",
        path="/v1/journal",
        handler=index,
        summary="List who did what in the account",
        tag="Journal",
        permission=caller.Permission.VIEW,
        query=JournalQuery,
        responses={200: JournalResponse},
    ),
)
