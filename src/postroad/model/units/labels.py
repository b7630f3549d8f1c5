"""Names that people give: display names as one plain line that cannot deceive its reader, addresses and domains.

JSON Schema and `check_label` share one pattern, so that no name is valid in one place and refused in another. Refused
are control characters, Unicode line breaks and bidirectional marks. It is apart from `model/mail/limits.py` because
short commands use that one, and msgspec would take them longer than everything else they do.
"""

import re
from typing import Final

import msgspec

from postroad import errors
from postroad.protocol.mime import address

LABEL_CHARACTERS: Final = 100
# Of the reason that a person gives for a change.
REASON_CHARACTERS: Final = 200
_PLAIN: Final = re.compile(rf"[^{address.UNSEEN}\ud800-\udfff]+")

LABEL_PATTERN: Final = f"^[^{address.UNSEEN}]+$"
LABEL: Final = msgspec.Meta(
    min_length=1,
    max_length=LABEL_CHARACTERS,
    description="A display name: one plain line.",
    extra_json_schema={"pattern": LABEL_PATTERN},
)


def check_label(field: str, text: str, *, limit: int = LABEL_CHARACTERS) -> str:
    """The name, or InvalidRequest with the name of the field."""
    if not 1 <= len(text) <= limit or not _PLAIN.fullmatch(text):
        raise errors.InvalidRequest(f"{field}: must be 1 to {limit} characters on one line, without control characters")
    return text


def parse_mailbox(field: str, text: str) -> address.Mailbox:
    """An address, or InvalidRequest with the name of the field."""
    try:
        return address.parse(text)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None


def parse_domain(field: str, text: str) -> str:
    """A domain as it is stored, or InvalidRequest with the name of the field."""
    try:
        return address.parse_domain(text)
    except address.AddressError as problem:
        raise errors.InvalidRequest(f"{field}: {problem}") from None
