"""The limits of a submission, in one table for both listeners, so that schemas, validation and docs/api.md agree.

It imports nothing, because short commands use it; a test compares it with the limits of the parsers.
"""

from typing import Final

SUBJECT_CHARACTERS: Final = 500
UNIQUE_RECIPIENTS: Final = 50
REPLY_TO_ADDRESSES: Final = 10
MIME_BYTES: Final = 10 * 1024 * 1024
ATTACHMENTS: Final = 20
TAGS: Final = 20
TAG_CHARACTERS: Final = 128
LIST_CHARACTERS: Final = 128
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
