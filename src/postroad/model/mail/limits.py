"""The limits of a submission, in one table for both listeners, so that schemas, validation and docs/api.md agree.

It imports nothing, because short commands use it; a test compares it with the limits of the parsers.
"""

import re
from typing import Final

import msgspec

from postroad import errors
from postroad.protocol.mime import address

SUBJECT_CHARACTERS: Final = 500
UNIQUE_RECIPIENTS: Final = 50
REPLY_TO_ADDRESSES: Final = 10
MIME_BYTES: Final = 10 * 1024 * 1024
ATTACHMENTS: Final = 20
TAGS: Final = 20
TAG_CHARACTERS: Final = 128
VARIABLES: Final = 32
# Of lists and objects in them. The second counts everything in all of them.
VARIABLE_DEPTH: Final = 16
VARIABLE_VALUES: Final = 10_000
METADATA_KEYS: Final = 20
METADATA_KEY_PATTERN: Final = r"[A-Za-z0-9_-]{1,40}"
METADATA_VALUE_CHARACTERS: Final = 500
CUSTOM_HEADERS: Final = 50
HEADER_NAME_CHARACTERS: Final = 76
HEADER_LINE_OCTETS: Final = 998
FILENAME_CHARACTERS: Final = 255
IDEMPOTENCY_KEY_CHARACTERS: Final = 255
IDEMPOTENCY_KEY_SECONDS: Final = 24 * 60 * 60
SEND_AT_DAYS: Final = 30
# A time that is over by less than this is now: the clocks of callers differ from ours.
SEND_AT_TOLERANCE_SECONDS: Final = 60
MIN_EXPIRES_IN_SECONDS: Final = 60
MAX_EXPIRES_IN_SECONDS: Final = 5 * 24 * 60 * 60
TEMPLATE_ALIAS_CHARACTERS: Final = 64
TEMPLATE_ALIAS_PATTERN: Final = rf"[a-z0-9_-]{{1,{TEMPLATE_ALIAS_CHARACTERS}}}"


# Display names of accounts, credentials and keys: one plain line that cannot deceive its reader.
#
# JSON Schema and `check` share one pattern, so that no name is valid in one place and refused in another. Refused are
# control characters, Unicode line breaks and bidirectional marks.

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
