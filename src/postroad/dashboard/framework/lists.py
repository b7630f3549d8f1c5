"""Paginated lists: what their queries share, and the lists of domains, SMTP credentials and API keys."""

from collections.abc import Awaitable, Callable
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from postroad.dashboard.framework import requests
from postroad.model.units import identifiers

ROWS: Final = 50


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    after: str | None = None


class Row(Protocol):
    """Anything with an id, which is also its position in the list."""

    @property
    def id(self) -> str: ...


AnyRow = TypeVar("AnyRow", bound=Row)


class ListPage(msgspec.Struct, Generic[AnyRow], frozen=True):
    """A page of rows; `next_cursor` is the cursor of the next page, if there is one."""

    rows: list[AnyRow]
    next_cursor: str | None = None
    is_first: bool = True


async def page(
    request: requests.PageRequest, read: Callable[..., Awaitable[list[AnyRow]]], *, prefix: str
) -> ListPage[AnyRow]:
    """The page that the query names; `read` is the service that reads the list."""
    query: Query = request.query
    after = identifiers.after(query.after, prefix)
    found = await read(request.ctx, request.account_id, after=after, limit=ROWS + 1)
    return ListPage(*identifiers.page(found, limit=ROWS), not after)
