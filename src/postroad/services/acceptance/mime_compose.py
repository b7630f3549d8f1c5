"""From a validated MIME message to everything that is stored.

Pure: ids and time are arguments. The message is sent unchanged except for a few fields: a trace field is prepended (RFC
5321 section 4.4), a missing Message-ID or Date is added (RFC 6409 sections 8.2 and 8.3), and fields that are only for
Postroad, that name blind copy recipients, or that only receiving hosts may write are removed. A Message-ID that is not
unique beyond the client's host and a malformed Date are replaced and kept under another name. A body that is not 7-bit
is encoded.
"""

import re
from typing import Final

import msgspec

from postroad import errors
from postroad.model import times
from postroad.protocol.mime import builder, message_parser, seven_bit
from postroad.services.acceptance import compose, mime_validation, transaction

# The second line is written by receiving hosts. The third would show a sender that was not validated.
DROPPED: Final = frozenset(
    f"bcc idempotency-key {mime_validation.TEMPLATE} {mime_validation.VARIABLES} "
    "return-path authentication-results delivered-to errors-to "
    "resent-from resent-sender resent-reply-to resent-to resent-cc resent-bcc resent-date resent-message-id".split()
)
# The names under which replaced fields are kept.
ORIGINALS: Final = {"message-id": "X-Original-Message-ID", "date": "X-Original-Date"}
# RFC 5322 section 3.6.4, with more characters, which are in use. The domain has a dot, or is an address.
_MESSAGE_ID: Final = re.compile(r"<[^\s<>@]+@(?:[^\s<>@.\[\]]+(?:\.[^\s<>@.\[\]]+)+|\[[^\s<>@\[\]]+\])>")
# RFC 5322 sections 3.3 and 4.3, with one comment at the end.
_DATE: Final = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)\s*,\s*)?(?:0?[1-9]|[12]\d|3[01])\s+"
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\s+\d{2,4}\s+"
    r"(?:[01]?\d|2[0-3]):[0-5]\d(?::(?:[0-5]\d|60))?\s+(?:[+-]\d{4}|[a-z]{1,5})(?:\s*\([^()]*\))?",
    re.ASCII | re.IGNORECASE,
)
MAX_KEPT_OCTETS: Final = 900


def compose_mime(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> transaction.Submission:
    """Everything that the accepting transaction stores. Raises InvalidRequest."""
    return compose.build_submission(checked, identity, body=_body(checked, identity))


def _body(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> bytes:
    message, added, drop = checked.message, [("Received", checked.trace)], DROPPED
    if checked.metadata:
        drop |= {name for name in checked.fields if name.startswith(mime_validation.METADATA_PREFIX)}
    replaced: set[str] = set()
    if not _is_valid(checked, "message-id", _MESSAGE_ID):
        added.append(("Message-ID", f"<{identity.message_id}@{checked.sender.domain}>"))
        replaced.add("message-id")
    if not _is_valid(checked, "date", _DATE):
        added.append(("Date", builder.format_date(identity.sent_at // times.SECOND)))
        replaced.add("date")
    if replaced:
        fields = tuple([_renamed(field) if field.key in replaced else field for field in message.fields])
        message = msgspec.structs.replace(message, fields=fields)
        drop |= replaced
    try:
        body = message_parser.rewrite(message, drop=drop, add=added, allow_utf8=checked.is_utf8)
    except message_parser.MessageError as problem:
        raise errors.InvalidRequest(str(problem)) from None
    return body if message.body.isascii() else seven_bit.encode(body)


def _renamed(field: message_parser.Field) -> message_parser.Field:
    """A field under another name, if it has a value and leaves room for the name on its line."""
    if not field.value or len(field.raw) > MAX_KEPT_OCTETS:
        return field
    name = ORIGINALS[field.key]
    return message_parser.Field(name, name.lower(), name.encode() + field.raw[len(field.name) :])


def _is_valid(checked: mime_validation.CheckedMime, name: str, syntax: re.Pattern[str]) -> bool:
    return any(syntax.fullmatch(field.value) for field in checked.fields.get(name, ()))
