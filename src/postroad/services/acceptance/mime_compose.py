"""From a validated MIME message to everything that is stored.

Pure: ids and time are arguments. The message is sent unchanged except for a few fields: a trace field is prepended (RFC
5321 section 4.4), a missing Message-ID or Date is added (RFC 6409 sections 8.2 and 8.3), and fields that are only for
Postroad, that name blind copy recipients, or that only receiving hosts may write are removed. A Message-ID that is not
unique beyond the client's host is replaced and kept under another name. A body that is not 7-bit is encoded.
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
ORIGINAL_MESSAGE_ID: Final = "X-Original-Message-ID"
# RFC 5322 section 3.6.4, with more characters, which are in use. The domain has a dot, or is an address.
_MESSAGE_ID: Final = re.compile(r"<[^\s<>@]+@(?:[^\s<>@.\[\]]+(?:\.[^\s<>@.\[\]]+)+|\[[^\s<>@\[\]]+\])>")
MAX_KEPT_MESSAGE_ID_OCTETS: Final = 900


def compose_mime(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> transaction.Submission:
    """Everything that the accepting transaction stores. Raises InvalidRequest."""
    return compose.build_submission(checked, identity, body=_body(checked, identity))


def _body(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> bytes:
    message, added, drop = checked.message, [("Received", checked.trace)], DROPPED
    if checked.metadata:
        drop |= {name for name in checked.fields if name.startswith(mime_validation.METADATA_PREFIX)}
    if not any(_MESSAGE_ID.fullmatch(field.value) for field in checked.fields.get("message-id", ())):
        added.append(("Message-ID", f"<{identity.message_id}@{checked.sender.domain}>"))
        message = msgspec.structs.replace(message, fields=tuple(map(_renamed, message.fields)))
        drop |= {"message-id"}
    if _is_missing(checked, "date"):
        added.append(("Date", builder.format_date(identity.sent_at // times.SECOND)))
        drop |= {"date"}
    try:
        body = message_parser.rewrite(message, drop=drop, add=added, allow_utf8=checked.is_utf8)
    except message_parser.MessageError as problem:
        raise errors.InvalidRequest(str(problem)) from None
    return body if message.body.isascii() else seven_bit.encode(body)


def _renamed(field: message_parser.Field) -> message_parser.Field:
    """A Message-ID under another name, if it has a value and leaves room for the name on its line."""
    if field.key != "message-id" or not field.value or len(field.raw) > MAX_KEPT_MESSAGE_ID_OCTETS:
        return field
    raw = ORIGINAL_MESSAGE_ID.encode() + field.raw[len(field.name) :]
    return message_parser.Field(ORIGINAL_MESSAGE_ID, ORIGINAL_MESSAGE_ID.lower(), raw)


def _is_missing(checked: mime_validation.CheckedMime, name: str) -> bool:
    """An empty field counts as missing."""
    return name not in checked.fields or not checked.fields[name][0].value
