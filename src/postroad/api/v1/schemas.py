"""What the lists of the management routes share on the wire: how many, from where, from when, and how to go on."""

from typing import Annotated

import msgspec

from postroad import errors
from postroad.model import cursors, times

Limit = Annotated[
    int,
    msgspec.Meta(
        ge=1, le=cursors.MAX_LIMIT, description=f"How many at most; {cursors.DEFAULT_LIMIT} unless told otherwise."
    ),
]
NextCursor = Annotated[
    str | None, msgspec.Meta(description="Asks for the next part of the list as `cursor`; null when this is the last.")
]

# A time that a caller gives.
Timestamp = Annotated[str, msgspec.Meta(max_length=64, extra_json_schema={"format": "date-time"})]


def parse_timestamp(field: str, text: str) -> int:
    """The time that a member says."""
    try:
        return times.parse(text)
    except ValueError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def cursor_of(pattern: str) -> msgspec.Meta:
    """How a schema describes a cursor into a list of what has this shape."""
    return msgspec.Meta(
        description="`next_cursor` of the part before; absent for the first part.",
        extra_json_schema={"pattern": pattern},
    )
