"""What the lists of the management routes share on the wire: how many, from where, and how to go on."""

from typing import Annotated

import msgspec

from postroad.model import cursors

Limit = Annotated[
    int, msgspec.Meta(ge=1, le=cursors.MOST, description=f"How many at most; {cursors.USUAL} unless told otherwise.")
]
NextCursor = Annotated[
    str | None, msgspec.Meta(description="Asks for the next part of the list as `cursor`; null when this is the last.")
]


def cursor_of(pattern: str) -> msgspec.Meta:
    """How a schema describes a cursor into a list of what has this shape."""
    return msgspec.Meta(
        description="`next_cursor` of the part before; absent for the first part.",
        extra_json_schema={"pattern": pattern},
    )
