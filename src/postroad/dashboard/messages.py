"""`/messages`: the messages of the account, newest first, with search (model/search_query.py)."""

import dataclasses
from typing import Final
from urllib import parse

import msgspec

from postroad.dashboard import requests
from postroad.model import mail, search_query
from postroad.services.messages import lookup as messages
from postroad.web import routing

PATH: Final = "/messages"
ROWS: Final = 50
# The periods that have a button; others are typed into the search box.
PERIODS: Final = (("24h", "24 hours"), ("7d", "7 days"))


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The search text and the cursor."""

    search: str | None = None
    cursor: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """A filter button."""

    text: str
    path: str
    is_chosen: bool


async def index(request: requests.PageRequest) -> routing.Response:
    """A page of results, or what is wrong with the search."""
    query: Query = request.query
    text = (query.search or "").strip()
    try:
        found = await messages.search(request.ctx, request.account_id, text, limit=ROWS, cursor=query.cursor)
    except search_query.QueryError as problem:
        return _page(request, search_query.Query(), text=text, status=400, problem=problem)
    return _page(request, found.query, text=text, found=found)


def _page(
    request: requests.PageRequest,
    query: search_query.Query,
    *,
    text: str,
    status: int = 200,
    found: messages.SearchPage | None = None,
    problem: search_query.QueryError | None = None,
) -> routing.Response:
    asked: Query = request.query
    return request.page(
        "messages.html",
        status=status,
        text=text,
        found=found,
        problem=problem.message.removeprefix("search: ") if problem else "",
        parts=(text[: problem.start], text[problem.start : problem.end], text[problem.end :]) if problem else (),
        choices={"Mode": _modes(query), "Status": _statuses(query), "Accepted": _periods(query)},
        is_first=asked.cursor is None,
        next_url=path_of(text, found.next_cursor) if found and found.next_cursor else "",
        wider=path_of(search_query.format(dataclasses.replace(query, after=None, before=None, status=None))),
        examples=[(name, finds, example, path_of(example)) for name, finds, example in search_query.HELP],
        max_characters=search_query.MAX_CHARACTERS,
    )


def path_of(text: str, cursor: str | None = None) -> str:
    """The URL of a search."""
    wanted = {name: value for name, value in (("search", text), ("cursor", cursor)) if value}
    return f"{PATH}?{parse.urlencode(wanted)}" if wanted else PATH


def _modes(query: search_query.Query) -> list[Choice]:
    live, test = dataclasses.replace(query, mode=None), dataclasses.replace(query, mode=mail.Mode.TEST)
    return [
        Choice("Live", path_of(search_query.format(live)), query.mode is not mail.Mode.TEST),
        _choice("Test", query, test),
    ]


def _statuses(query: search_query.Query) -> list[Choice]:
    """The same search with any status, and with each one."""
    everything = _choice("All", query, dataclasses.replace(query, status=None))
    return [
        everything,
        *(_choice(one.title(), query, dataclasses.replace(query, status=one)) for one in mail.MessageStatus),
    ]


def _periods(query: search_query.Query) -> list[Choice]:
    anytime = _choice("Any time", query, dataclasses.replace(query, after=None, before=None))
    recent = [
        _choice(f"Last {text}", query, dataclasses.replace(query, after=span, before=None)) for span, text in PERIODS
    ]
    return [anytime, *recent]


def _choice(text: str, query: search_query.Query, changed: search_query.Query) -> Choice:
    return Choice(text, path_of(search_query.format(changed)), changed == query)


ROUTES: Final = (requests.get(PATH, index, query=Query),)
