"""The audit log as a CSV file (RFC 4180), newest first, with the filters of a search."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from postroad.model import times
from postroad.services import audit_log, context, csv_rows
from postroad.storage import audit_log as stored

COLUMNS: Final = (
    "created_at",
    "actor_kind",
    "actor",
    "action",
    "subject",
    "detail",
    "text",
    "client_address",
    "request_id",
    "id",
)
# Entries per query.
PAGE_ROWS: Final = 1_000
# More is a matter for the API, page by page.
MAX_ROWS: Final = 100_000


async def export(ctx: context.Context, account_id: str, filters: audit_log.Filters) -> AsyncGenerator[bytes, None]:
    """The entries that match, streamed; the newest MAX_ROWS at most."""
    yield csv_rows.lines([COLUMNS])
    cursor: str | None = None
    left = MAX_ROWS
    while left:
        found = await audit_log.search(ctx, account_id, filters, before=cursor, limit=min(PAGE_ROWS, left))
        if found.entries:
            yield csv_rows.lines(map(_cells, found.entries))
        left -= len(found.entries)
        cursor = found.next_cursor
        if cursor is None:
            return


def _cells(entry: stored.Entry) -> Sequence[str | int]:
    return (
        times.to_wire(entry.created_at),
        audit_log.kind_of(entry),
        entry.actor,
        entry.action,
        entry.subject,
        entry.detail,
        audit_log.text(entry),
        entry.client_address,
        entry.request_id,
        entry.id,
    )
