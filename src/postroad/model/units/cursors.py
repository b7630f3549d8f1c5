"""Cursors: positions in a list.

Ids sort by time, so an id is a cursor, and so is a time. A foreign id used as a cursor is only a position in the
caller's own list.
"""

from collections.abc import Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from postroad import errors
from postroad.model.units import identifiers

Row = TypeVar("Row")
MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 25
# Sorts after every digit of an id.
_AFTER_ALL: Final = "~"
_TIME_DIGITS: Final = 14
# The last microsecond that an id can hold.
LAST: Final = 16**_TIME_DIGITS - 1


def at(prefix: str, microseconds: int) -> str:
    """The position before everything created at this time or later."""
    return f"{prefix}{min(microseconds, LAST):0{_TIME_DIGITS}x}"


def time_of(cursor: str, prefix: str) -> int:
    """The time of a cursor in microseconds: the argument of `at`, or when the id was created."""
    return int(cursor[len(prefix) : len(prefix) + _TIME_DIGITS], 16)


def end(prefix: str) -> str:
    """The position after everything."""
    return prefix + _AFTER_ALL


def after(cursor: str | None, prefix: str) -> str:
    """The position after which a page begins; empty for the first page."""
    return "" if cursor is None else check("cursor", cursor, prefix)


def next_cursor(ids: Sequence[str], *, limit: int) -> str | None:
    """The cursor of the next page when more than `limit` rows were found; else None."""
    return ids[limit - 1] if len(ids) > limit else None


class Page(NamedTuple, Generic[Row]):
    """Rows of a list, and the cursor to continue with, None at the end; there may be more although there are few."""

    rows: list[Row]
    next_cursor: str | None


def page(found: list[Row], *, limit: int, key: str = "id") -> Page[Row]:
    """The first `limit` rows; `key` is the attribute that is a row's position."""
    return Page(found[:limit], next_cursor([getattr(row, key) for row in found], limit=limit))


def check(field: str, text: str, prefix: str) -> str:
    """A cursor from a caller, checked."""
    if not identifiers.is_identifier(text, prefix):
        raise errors.InvalidRequest(f"{field}: is not a cursor of this list; use the cursor of the previous page")
    return text
