"""Fields that the lists of the management API share: limit, cursor and timestamps."""

from typing import Annotated

import msgspec

from postroad import errors
from postroad.model import cursors, times

Limit = Annotated[
    int,
    msgspec.Meta(
        ge=1, le=cursors.MAX_LIMIT, description=f"Maximum number of items; {cursors.DEFAULT_LIMIT} by default."
    ),
]
NextCursor = Annotated[
    str | None, msgspec.Meta(description="Pass as `cursor` for the next page; null on the last page.")
]

# A timestamp in a request.
Timestamp = Annotated[str, msgspec.Meta(max_length=64, extra_json_schema={"format": "date-time"})]


def parse_timestamp(field: str, text: str) -> int:
    """The time in microseconds that a field gives."""
    try:
        return times.parse(text)
    except ValueError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def cursor_of(pattern: str) -> msgspec.Meta:
    """The schema of a cursor into a list whose ids have this pattern."""
    return msgspec.Meta(
        description="`next_cursor` of the previous page; absent for the first page.",
        extra_json_schema={"pattern": pattern},
    )
