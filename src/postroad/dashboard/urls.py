"""The URLs of the pages that other pages link to."""

from typing import Final
from urllib import parse

from postroad.model import search_query

MESSAGES: Final = "/messages"
BULK: Final = "/bulk"


def of(path: str, /, **parameters: str | None) -> str:
    """A path with those parameters that have a value."""
    given = {name: value for name, value in parameters.items() if value}
    return f"{path}?{parse.urlencode(given)}" if given else path


def messages(search: str, cursor: str | None = None) -> str:
    """The list of messages that a search finds."""
    return of(MESSAGES, search=search, cursor=cursor)


def messages_with(value: str, name: str) -> str:
    """The same for one filter of the search and its value."""
    return messages(search_query.format(search_query.Query(more=((search_query.Term(name, value),),))))


def message(message_id: str, search: str) -> str:
    """A message in the results of a search."""
    return of(f"{MESSAGES}/{message_id}", search=search)


def bulk(action: str, search: str) -> str:
    """The confirmation of an action on what a search finds."""
    return of(BULK, action=action, search=search)


def recipient(email: str) -> str:
    """What was sent to an address."""
    return f"/recipients/{parse.quote(email, safe='')}"
