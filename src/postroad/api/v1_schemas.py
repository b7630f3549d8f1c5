"""What the management routes share on the wire: times, ids, and the parts of a list."""

from typing import Annotated

import msgspec

from postroad.model import cursors, times

WireTime = Annotated[str, times.WIRE]
Limit = Annotated[
    int, msgspec.Meta(ge=1, le=cursors.MOST, description=f"How many at most; {cursors.USUAL} unless told otherwise.")
]
NextCursor = Annotated[
    str | None, msgspec.Meta(description="Asks for the next part of the list as `cursor`; null when this is the last.")
]


def cursor_of(prefix: str) -> msgspec.Meta:
    """How a schema describes a cursor into a list of such ids."""
    return msgspec.Meta(
        description="`next_cursor` of the part before; absent for the first part.",
        extra_json_schema={"pattern": cursors.pattern(prefix)},
    )


def next_cursor(ids: list[str], *, limit: int) -> str | None:
    """The cursor to the next part, when one more than `limit` was found."""
    return ids[limit - 1] if len(ids) > limit else None
