"""`/inbox`, in `postroad dev` only: what the mailbox simulator has received.

The inbox is the installation's, not an account's: everybody who is logged in sees all of it, as in `/v1/inbox`.
"""

from typing import Final
from urllib import parse

import msgspec

from postroad.dashboard import previews, visits
from postroad.dashboard import site as sites
from postroad.services import context
from postroad.services import inbox as received
from postroad.web import routing

PATH: Final = "/inbox"
ROWS: Final = 50


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Mail to whom, and older than which."""

    to: str | None = None
    before: str | None = None


def routes(site: sites.Site, mail: received.Inbox) -> tuple[routing.Route[context.Context], ...]:
    """The list, each message, and emptying it all."""

    async def index(visit: visits.Visit) -> routing.Answer:
        query: Query = visit.query
        to = (query.to or "").strip()
        found = mail.newest_first(to=to or None)
        rows = [one for one in found if query.before is None or one.id < query.before]
        following = {"to": to, "before": rows[ROWS - 1].id} if len(rows) > ROWS else None
        return visit.page(
            "inbox.html",
            rows=rows[:ROWS],
            to=to,
            is_first=query.before is None,
            following=f"{PATH}?{parse.urlencode(following)}" if following else "",
        )

    async def show(visit: visits.Visit) -> routing.Answer:
        query: previews.Query = visit.query
        one = mail.find(visit.request.path["id"])
        shown = await previews.shown(f"{PATH}/{one.id}", one.content, query.view)
        return visit.page("received.html", one=one, shown=shown)

    async def clear(visit: visits.Visit) -> routing.Answer:
        mail.clear()
        return visit.go(PATH, notice="The inbox is empty.")

    async def content(visit: visits.Visit) -> bytes:
        return mail.find(visit.request.path["id"]).content

    return (
        visits.look(site, PATH, index, query=Query),
        visits.change(site, f"{PATH}/clear", clear),
        visits.look(site, f"{PATH}/{{id}}", show, query=previews.Query),
        *previews.parts(site, f"{PATH}/{{id}}", content),
    )
