"""`/journal`: who did what in the account."""

from typing import Final

import msgspec

from postroad.dashboard import site as sites
from postroad.dashboard import visits
from postroad.services import context, journal
from postroad.web import routing

ROWS: Final = 50


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the journal."""

    before: str | None = None


async def index(visit: visits.Visit) -> routing.Answer:
    """A part of the journal, newest first."""
    query: Query = visit.query
    entries = await journal.page(visit.ctx, visit.account_id, before=query.before, limit=ROWS + 1)
    return visit.page(
        "journal.html",
        rows=[(entry, journal.text(entry)) for entry in entries[:ROWS]],
        following=entries[ROWS - 1].id if len(entries) > ROWS else None,
        is_first=query.before is None,
        days=visit.ctx.settings.dashboard.journal_days,
    )


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """Nothing here can be changed."""
    return (visits.look(site, "/journal", index, query=Query),)
