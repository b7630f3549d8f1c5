"""`/inbox`, in `postroad dev` only: the mail that the simulator received.

The inbox belongs to the installation, not to an account: every user sees all of it, as in `/v1/inbox`.
"""

from typing import Final
from urllib import parse

import msgspec

from postroad.dashboard import previews, requests
from postroad.dashboard import site as sites
from postroad.services import context
from postroad.services.messages import dev_inbox as received
from postroad.web import routing

PATH: Final = "/inbox"
ROWS: Final = 50


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The recipient to filter by, and the cursor."""

    to: str | None = None
    before: str | None = None


def routes(site: sites.Site, mail: received.Inbox) -> tuple[routing.Route[context.Context], ...]:
    """The list, a message, and clearing the inbox."""

    async def index(page_request: requests.PageRequest) -> routing.Response:
        query: Query = page_request.query
        to = (query.to or "").strip()
        found = mail.newest_first(to=to or None)
        rows = [one for one in found if query.before is None or one.id < query.before]
        next_query = {"to": to, "before": rows[ROWS - 1].id} if len(rows) > ROWS else None
        return page_request.page(
            "inbox.html",
            rows=rows[:ROWS],
            to=to,
            is_first=query.before is None,
            next_url=f"{PATH}?{parse.urlencode(next_query)}" if next_query else "",
        )

    async def show(page_request: requests.PageRequest) -> routing.Response:
        query: previews.Query = page_request.query
        one = mail.find(page_request.request.path["id"])
        shown = await previews.preview_page(f"{PATH}/{one.id}", one.content, query.view)
        return page_request.page("inbox_message.html", one=one, shown=shown)

    async def clear(page_request: requests.PageRequest) -> routing.Response:
        mail.clear()
        return page_request.redirect(PATH, notice="Inbox cleared.")

    async def content(page_request: requests.PageRequest) -> bytes:
        return mail.find(page_request.request.path["id"]).content

    return (
        requests.get(site, PATH, index, query=Query),
        requests.post(site, f"{PATH}/clear", clear),
        requests.get(site, f"{PATH}/{{id}}", show, query=previews.Query),
        *previews.parts(site, f"{PATH}/{{id}}", content),
    )
