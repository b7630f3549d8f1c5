"""`/messages`: the messages of the account, newest first, with search (model/search_query.py)."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.dashboard import lists, message_rows, requests, saved_views, urls
from postroad.model import mail, search_query
from postroad.services.messages import bulk_actions, export_csv, hidden_content
from postroad.services.messages import lookup as messages
from postroad.services.messages import saved_views as views_of_account
from postroad.storage import saved_views as stored_views
from postroad.web import routing

EXPORT_PATH: Final = "/messages.csv"
ROWS: Final = 50
# Every file system takes so many characters.
MAX_FILE_NAME: Final = 100
# The periods that have a button; others are typed into the search box.
PERIODS: Final = (("24h", "24 hours"), ("7d", "7 days"))


class Query(lists.SearchQuery, frozen=True, forbid_unknown_fields=True):
    """The search text and the cursor."""

    cursor: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """A filter button."""

    text: str
    path: str
    is_chosen: bool


async def index(request: requests.PageRequest) -> routing.Response:
    """A page of results, or what is wrong with the search."""
    query: Query = request.query
    text = query.text
    views = await saved_views.visible(request)
    try:
        found = await messages.search(
            request.ctx, request.account_id, request.searched(text), limit=ROWS, cursor=query.cursor, zone=request.zone
        )
    except search_query.QueryError as problem:
        return _page(request, search_query.Query(), text=text, views=views, status=400, problem=problem)
    rows = await message_rows.read(request.ctx, request.account_id, request.shown(found.messages))
    counted = ""
    if query.cursor is None:
        filters = messages.filters_of(request.ctx, found.query, zone=request.zone)
        counted = in_words(found.count or await messages.count(request.ctx, request.account_id, filters))
    return _page(request, found.query, text=text, views=views, found=found, rows=rows, counted=counted)


def in_words(count: messages.Count) -> str:
    """How many messages there are, as far as it is known."""
    return "1 message" if count == messages.Count(1, is_exact=True) else f"{count} messages"


def _page(
    request: requests.PageRequest,
    query: search_query.Query,
    *,
    text: str,
    views: Sequence[stored_views.SavedView],
    status: int = 200,
    found: messages.SearchPage | None = None,
    rows: Sequence[message_rows.Row] = (),
    counted: str = "",
    problem: search_query.QueryError | None = None,
) -> routing.Response:
    asked: Query = request.query
    return request.page(
        "messages.html",
        status=status,
        text=text,
        views=views,
        chips=saved_views.chips(views, text),
        max_name=views_of_account.NAME_CHARACTERS,
        found=found,
        rows=rows,
        counted=counted,
        suggested=_suggestion(query) if found and not rows and not found.next_cursor else None,
        problem=problem.detail if problem else "",
        parts=(text[: problem.start], text[problem.start : problem.end], text[problem.end :]) if problem else (),
        choices={"Mode": _modes(query), "Status": _statuses(query), "Accepted": _periods(query)},
        is_first=asked.cursor is None,
        first_url=urls.messages(text),
        bulk_urls=[(one.title(), urls.bulk(one, text)) for one in bulk_actions.Action],
        export_url=urls.of(EXPORT_PATH, search=text),
        tail_url=urls.of("/tail", search=text),
        next_url=urls.messages(text, found.next_cursor) if found and found.next_cursor else "",
        wider=urls.messages(search_query.format(dataclasses.replace(query, after=None, before=None, status=None))),
        examples=[
            (name, finds, example, urls.messages(example))
            for name, finds, example in search_query.HELP
            if not request.hides_content or hidden_content.can_search(example)
        ],
        max_characters=search_query.MAX_CHARACTERS,
    )


def _suggestion(query: search_query.Query) -> Choice | None:
    """What somebody may have meant who found nothing."""
    meant = search_query.suggestion(query)
    text = search_query.format(meant) if meant else ""
    return Choice(text, urls.messages(text), is_chosen=False) if text else None


def _modes(query: search_query.Query) -> list[Choice]:
    live, test = dataclasses.replace(query, mode=None), dataclasses.replace(query, mode=mail.Mode.TEST)
    return [
        Choice("Live", urls.messages(search_query.format(live)), query.mode is not mail.Mode.TEST),
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
    return Choice(text, urls.messages(search_query.format(changed)), changed == query)


async def export_file(request: requests.PageRequest) -> routing.Response:
    """All results of a search as CSV."""
    asked: lists.SearchQuery = request.query
    text = asked.text
    filters = messages.filters_of(request.ctx, search_query.parse(request.searched(text)), zone=request.zone)
    content = export_csv.export(request.ctx, request.account_id, filters, hides_content=request.hides_content)
    return routing.attachment(f"{_file_name(text)}.csv", content)


def _file_name(text: str) -> str:
    """The search in letters and digits."""
    return "-".join(["messages", *re.findall(r"[A-Za-z0-9]+", text)])[:MAX_FILE_NAME]


ROUTES: Final = (
    requests.get(urls.MESSAGES, index, query=Query),
    requests.get(EXPORT_PATH, export_file, query=lists.SearchQuery, looking=requests.Looking.REFUSED),
)
