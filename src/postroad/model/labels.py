"""Names that people give to their things: accounts, credentials, keys. One plain line that cannot deceive who reads it.

The pattern says the same to JSON Schema and to `check`, which every door uses, so that no name is fine in one place and
refused in another. Refused are control characters, Unicode's line breaks and the marks that turn the direction of text.
"""

import re
from typing import Final

import msgspec

from postroad import errors
from postroad.protocol.mime import header_text

MAX_CHARACTERS: Final = 100
_PLAIN: Final = re.compile(rf"[^{header_text.UNSEEN}\ud800-\udfff]+")

SCHEMA_PATTERN: Final = f"^[^{header_text.UNSEEN}]+$"
NAME: Final = msgspec.Meta(
    min_length=1,
    max_length=MAX_CHARACTERS,
    description="A name for people: one plain line.",
    extra_json_schema={"pattern": SCHEMA_PATTERN},
)


def check(field: str, text: str, *, limit: int = MAX_CHARACTERS) -> str:
    """The name, or InvalidRequest with the name of the field."""
    if not 1 <= len(text) <= limit or not _PLAIN.fullmatch(text):
        raise errors.InvalidRequest(f"{field}: 1 to {limit} characters on one line, without control characters")
    return text
