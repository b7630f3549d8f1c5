"""`/inbox`, in `postroad dev` only: the mail that the simulator received.

The inbox belongs to the installation, not to an account: every user sees all of it, as in `/v1/inbox`.
"""

from typing import Final
from urllib import parse

import msgspec

from postroad.dashboard import previews, requests
from postroad.services.messages import dev_inbox as received
from postroad.web import routing

PATH: Final = "/inbox"
ROWS: Final = 50


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The recipient to filter by, and the cursor."""

    to: str | None = None
    before: str | None = None


def routes(mail: received.Inbox) -> tuple[requests.SiteRoute, ...]:
    """The list, a message, and clearing the inbox."""

    async def index(request: requests.PageRequest) -> routing.Response:
        query: Query = request.query
        to = (query.to or "").strip()
        found = mail.newest_first(to=to or None)
        rows = [one for one in found if query.before is None or one.id < query.before]
        next_query = {"to": to, "before": rows[ROWS - 1].id} if len(rows) > ROWS else None
        return request.page(
            "inbox.html",
            rows=rows[:ROWS],
            to=to,
            is_first=query.before is None,
            next_url=f"{PATH}?{parse.urlencode(next_query)}" if next_query else "",
        )

    async def show(request: requests.PageRequest) -> routing.Response:
        query: previews.Query = request.query
        one = mail.find(request.path["id"])
        shown = await previews.preview_page(request, f"{PATH}/{one.id}", one.content, wanted=query.view)
        return request.page("inbox_message.html", one=one, shown=shown)

    async def clear(request: requests.PageRequest) -> routing.Response:
        mail.clear()
        return request.redirect(PATH, notice="Inbox cleared.")

    async def content(request: requests.PageRequest) -> bytes:
        return mail.find(request.path["id"]).content

    return (
        requests.get(PATH, index, query=Query),
        requests.post(f"{PATH}/clear", clear),
        requests.get(f"{PATH}/{{id}}", show, query=previews.Query),
        *previews.parts(f"{PATH}/{{id}}", content),
    )
