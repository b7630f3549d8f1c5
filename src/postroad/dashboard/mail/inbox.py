"""`/inbox`, in `postroad dev` only: the mail that the simulator received.

The inbox belongs to the installation, not to an account: every user sees all of it, as in `/v1/inbox`.
"""

from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard.framework import navigation, requests
from postroad.dashboard.mail import previews
from postroad.services.messages import content_checks, dev_inbox
from postroad.services.messages import lookup as messages
from postroad.web import routing

PATH: Final = "/inbox"
ROWS: Final = 50
# As long as a subject.
SEARCH_CHARACTERS: Final = 500


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    search: str | None = None
    before: str | None = None


async def _message_id(request: requests.PageRequest, received: dev_inbox.CapturedMessage) -> str | None:
    """The message of this account that was received; None for mail of other accounts, and for deleted messages."""
    message_id = dev_inbox.sent_as(request.ctx.keys, received)
    if message_id is None:
        return None
    try:
        await messages.find(request.ctx, request.account_id, message_id)
    except errors.NotFound:
        return None
    return message_id


def routes(mail: dev_inbox.Inbox) -> tuple[requests.SiteRoute, ...]:
    async def index(request: requests.PageRequest) -> routing.Response:
        query: Query = request.query
        search = (query.search or "").strip()[:SEARCH_CHARACTERS]
        rows = [message for message in mail.search(search) if query.before is None or message.id < query.before]
        return request.page(
            "inbox.html",
            rows=rows[:ROWS],
            search=search,
            is_first=query.before is None,
            next_url=navigation.url(PATH, search=search, before=rows[ROWS - 1].id) if len(rows) > ROWS else "",
        )

    async def show(request: requests.PageRequest) -> routing.Response:
        query: previews.Query = request.query
        received = mail.find(request.path["id"])

        async def origin() -> content_checks.Origin:
            return content_checks.Origin(received.envelope_from.rpartition("@")[2])

        shown = await previews.preview_page(request, f"{PATH}/{received.id}", received.content, query, origin=origin)
        return request.page(
            "inbox_message.html", received=received, shown=shown, message_id=await _message_id(request, received)
        )

    async def clear(request: requests.PageRequest) -> routing.Response:
        mail.clear()
        return request.redirect(PATH, notice="Inbox cleared.")

    async def content(request: requests.PageRequest) -> bytes:
        return mail.find(request.path["id"]).content

    return (
        requests.get(
            PATH, index, query=Query, permission=requests.CONTENT, viewing=requests.Viewing.REFUSED, is_live=True
        ),
        requests.post(f"{PATH}/clear", clear),
        requests.get(
            f"{PATH}/{{id}}",
            show,
            query=previews.Query,
            permission=requests.CONTENT,
            viewing=requests.Viewing.REFUSED,
        ),
        *previews.parts(f"{PATH}/{{id}}", content),
    )
