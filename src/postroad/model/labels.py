"""Display names of accounts, credentials and keys: one plain line that cannot deceive its reader.

JSON Schema and `check` share one pattern, so that no name is valid in one place and refused in another. Refused are
control characters, Unicode line breaks and bidirectional marks.
"""

import re
from typing import Final

import msgspec

from postroad import errors
from postroad.protocol import address_syntax

MAX_CHARACTERS: Final = 100
# Of the reason that a person gives for a change.
REASON_CHARACTERS: Final = 200
_PLAIN: Final = re.compile(rf"[^{address_syntax.UNSEEN}\ud800-\udfff]+")

SCHEMA_PATTERN: Final = f"^[^{address_syntax.UNSEEN}]+$"
NAME: Final = msgspec.Meta(
    min_length=1,
    max_length=MAX_CHARACTERS,
    description="A display name: one plain line.",
    extra_json_schema={"pattern": SCHEMA_PATTERN},
)


def check(field: str, text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """The name, or InvalidRequest with the name of the field."""
    if not 1 <= len(text) <= limit or not _PLAIN.fullmatch(text):
        raise errors.InvalidRequest(f"{field}: must be 1 to {limit} characters on one line, without control characters")
    return text
