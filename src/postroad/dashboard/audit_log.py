"""`/audit-log`: who did what in the account."""

from typing import Final

import msgspec

from postroad.dashboard import requests
from postroad.services import audit_log
from postroad.web import routing

ROWS: Final = 50


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the log."""

    before: str | None = None


async def index(request: requests.PageRequest) -> routing.Response:
    """A page of the log, newest first."""
    query: Query = request.query
    entries = await audit_log.page(request.ctx, request.account_id, before=query.before, limit=ROWS + 1)
    return request.page(
        "audit_log.html",
        rows=[(entry, audit_log.text(entry)) for entry in entries[:ROWS]],
        next_cursor=entries[ROWS - 1].id if len(entries) > ROWS else None,
        is_first=query.before is None,
        days=request.ctx.settings.dashboard.audit_log_days,
    )


ROUTES: Final = (requests.get("/audit-log", index, query=Query),)
