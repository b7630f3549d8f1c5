"""`/tail`: what happens to the account's mail, line by line, as `postroad tail` shows it."""

from typing import Final

import msgspec

from postroad.dashboard import messages as message_list
from postroad.dashboard import requests
from postroad.model import search_query
from postroad.services.messages import lookup, tail
from postroad.web import routing

PATH: Final = "/tail"


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which messages."""

    search: str | None = None


async def show(request: requests.PageRequest) -> routing.Response:
    """The newest events, oldest first; with a script, new ones are appended."""
    query: Query = request.query
    text = (query.search or "").strip()
    problem = ""
    events: list[tail.Event] = []
    try:
        found = await lookup.search(
            request.ctx, request.account_id, text, limit=tail.MAX_MESSAGES, cursor=None, zone=request.zone
        )
    except search_query.QueryError as error:
        problem = error.message.removeprefix("search: ")
    else:
        events = await tail.events(request.ctx, request.account_id, found)
    return request.page(
        "tail.html",
        status=400 if problem else 200,
        text=text,
        problem=problem,
        events=events,
        list_url=message_list.path_of(text),
        max_messages=tail.MAX_MESSAGES,
        max_characters=search_query.MAX_CHARACTERS,
    )


ROUTES: Final = (requests.get(PATH, show, query=Query),)
