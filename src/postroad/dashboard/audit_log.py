"""`/audit-log`: who did what in the account."""

from typing import Final

from postroad.dashboard import lists, requests
from postroad.model import cursors
from postroad.services import audit_log
from postroad.web import routing

ROWS: Final = 50


async def index(request: requests.PageRequest) -> routing.Response:
    """A page of the log, newest first."""
    query: lists.NewestQuery = request.query
    entries = await audit_log.page(request.ctx, request.account_id, before=query.before, limit=ROWS + 1)
    rows, next_cursor = cursors.page(entries, limit=ROWS)
    return request.page(
        "audit_log.html",
        rows=[(entry, audit_log.text(entry)) for entry in rows],
        next_cursor=next_cursor,
        is_first=query.before is None,
        days=request.ctx.settings.dashboard.audit_log_days,
    )


ROUTES: Final = (requests.get("/audit-log", index, query=lists.NewestQuery),)
