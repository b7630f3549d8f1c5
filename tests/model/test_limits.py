"""The limits, held against the figures that docs/api.md promises."""

from postroad.model.mail import limits
from postroad.protocol.mime import file_names, header_fields

DOCUMENTED = {
    "SUBJECT_CHARACTERS": 500,
    "UNIQUE_RECIPIENTS": 50,
    "REPLY_TO_ADDRESSES": 10,
    "MIME_BYTES": 10_485_760,
    "ATTACHMENTS": 20,
    "TAGS": 20,
    "TAG_CHARACTERS": 128,
    "LIST_CHARACTERS": 128,
    "METADATA_KEYS": 20,
    "METADATA_KEY_PATTERN": "[A-Za-z0-9_-]{1,40}",
    "METADATA_VALUE_CHARACTERS": 500,
    "VARIABLES": 32,
    "VARIABLE_DEPTH": 16,
    "VARIABLE_VALUES": 10_000,
    "CUSTOM_HEADERS": 50,
    "HEADER_NAME_CHARACTERS": 76,
    "HEADER_LINE_OCTETS": 998,
    "FILENAME_CHARACTERS": 255,
    "IDEMPOTENCY_KEY_CHARACTERS": 255,
    "IDEMPOTENCY_KEY_SECONDS": 86_400,
    "SEND_AT_DAYS": 30,
    "SEND_AT_TOLERANCE_SECONDS": 60,
    "MIN_EXPIRES_IN_SECONDS": 60,
    "MAX_EXPIRES_IN_SECONDS": 432_000,
    "TEMPLATE_ALIAS_CHARACTERS": 64,
    "TEMPLATE_ALIAS_PATTERN": "[a-z0-9_-]{1,64}",
}


def test_every_limit_has_its_documented_value() -> None:
    assert {name: value for name, value in vars(limits).items() if name.isupper()} == DOCUMENTED


def test_the_limits_are_those_of_the_parsers() -> None:
    assert limits.HEADER_NAME_CHARACTERS == header_fields.MAX_NAME_CHARACTERS
    assert limits.HEADER_LINE_OCTETS == header_fields.MAX_LINE_OCTETS
    assert limits.FILENAME_CHARACTERS == file_names.MAX_CHARACTERS
