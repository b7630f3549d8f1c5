"""Lists of an account that begin with the oldest and come in parts: domains, SMTP credentials, API keys."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from postroad.dashboard import requests
from postroad.model import cursors

ROWS: Final = 50


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the list."""

    after: str | None = None


class Row(Protocol):
    """Whatever has an id, which is its place in the list."""

    @property
    def id(self) -> str:
        """Sorts by when it was made."""


AnyRow = TypeVar("AnyRow", bound=Row)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[AnyRow]):
    """Some rows; `following` is the place behind which the next part begins, if there is one."""

    rows: list[AnyRow]
    following: str | None = None
    is_first: bool = True


async def page(
    page_request: requests.PageRequest, read: Callable[..., Awaitable[list[AnyRow]]], *, prefix: str
) -> ListPage[AnyRow]:
    """The part that the address names; `read` is the service that reads the list."""
    query: Query = page_request.query
    after = cursors.after(query.after, prefix)
    found = await read(page_request.ctx, page_request.account_id, after=after, limit=ROWS + 1)
    return ListPage(found[:ROWS], cursors.following([row.id for row in found], limit=ROWS), not after)
