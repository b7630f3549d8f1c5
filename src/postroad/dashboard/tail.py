"""`/tail`: what happens to the account's mail, line by line, as `postroad tail` shows it."""

import dataclasses
from typing import Final

from postroad.dashboard import lists, requests, urls
from postroad.model import search_query
from postroad.services.messages import lookup, tail
from postroad.web import routing

PATH: Final = "/tail"


async def show(request: requests.PageRequest) -> routing.Response:
    """The newest events, oldest first; with a script, new ones are appended."""
    query: lists.SearchQuery = request.query
    text = query.text
    problem = ""
    events: list[tail.Event] = []
    try:
        found = await lookup.search(
            request.ctx,
            request.account_id,
            request.searched(text),
            limit=tail.MAX_MESSAGES,
            cursor=None,
            zone=request.zone,
        )
    except search_query.QueryError as error:
        problem = error.detail
    else:
        found = dataclasses.replace(found, messages=request.shown(found.messages))
        events = await tail.events(request.ctx, request.account_id, found)
    return request.page(
        "tail.html",
        status=400 if problem else 200,
        text=text,
        problem=problem,
        events=events,
        list_url=urls.messages(text),
        max_messages=tail.MAX_MESSAGES,
        max_characters=search_query.MAX_CHARACTERS,
    )


ROUTES: Final = (requests.get(PATH, show, query=lists.SearchQuery),)
