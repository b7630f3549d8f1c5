"""Places in a list.

Ids sort by time, so an id is a cursor, and a time is the place before the ids that were made from then on. A cursor
that names nothing of its caller is still only a place in the caller's own list.
"""

from collections.abc import Sequence
from typing import Final

from postroad import errors
from postroad.model import identifiers

MAX_LIMIT: Final = 100
DEFAULT_LIMIT: Final = 25
# Sorts behind every digit of an id.
_AFTER_ALL: Final = "~"
_TIME_DIGITS: Final = 14
# The last microsecond that an id can tell.
_LAST: Final = 16**_TIME_DIGITS - 1


def at(prefix: str, microseconds: int) -> str:
    """The place before everything that was made at this time or later."""
    return f"{prefix}{min(microseconds, _LAST):0{_TIME_DIGITS}x}"


def time_of(cursor: str, prefix: str) -> int:
    """The time that a place tells, in microseconds: what `at` was given, or when the id was made."""
    return int(cursor[len(prefix) : len(prefix) + _TIME_DIGITS], 16)


def end(prefix: str) -> str:
    """The place behind everything."""
    return prefix + _AFTER_ALL


def after(cursor: str | None, prefix: str) -> str:
    """The place behind which a part of a list begins; the first part begins behind nothing."""
    return "" if cursor is None else check("cursor", cursor, prefix)


def following(places: Sequence[str], *, limit: int) -> str | None:
    """The place behind which the next part begins, when one more than `limit` was found; else None."""
    return places[limit - 1] if len(places) > limit else None


def check(field: str, text: str, prefix: str) -> str:
    """A cursor that came from a caller."""
    if not identifiers.is_identifier(text, prefix):
        raise errors.InvalidRequest(f"{field}: is not a cursor of this list; use the one of the page before")
    return text
