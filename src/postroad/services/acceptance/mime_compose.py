"""From a validated MIME message to everything that is stored.

Pure: ids and time are arguments. The message is sent unchanged except for a few fields: a trace field is prepended (RFC
5321 section 4.4), a missing Message-ID or Date is added (RFC 6409 sections 8.2 and 8.3), and fields that are only for
Postroad, that name blind copy recipients, or that only receiving hosts may write are removed.
"""

from typing import Final

from postroad import errors
from postroad.model import times
from postroad.protocol.mime import builder, message_parser
from postroad.services.acceptance import compose, mime_validation, transaction

# The second line is written by receiving hosts. The third would show a sender that was not validated.
DROPPED: Final = frozenset(
    f"bcc idempotency-key {mime_validation.TEMPLATE} {mime_validation.VARIABLES} "
    "return-path authentication-results delivered-to errors-to "
    "resent-from resent-sender resent-reply-to resent-to resent-cc resent-bcc resent-date resent-message-id".split()
)


def compose_mime(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> transaction.Submission:
    """Everything that the accepting transaction stores. Raises InvalidRequest."""
    return compose.build_submission(checked, identity, body=_body(checked, identity))


def _body(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> bytes:
    added, drop = [("Received", checked.trace)], DROPPED
    if _is_missing(checked, "message-id"):
        added.append(("Message-ID", f"<{identity.message_id}@{checked.sender.domain}>"))
        drop |= {"message-id"}
    if _is_missing(checked, "date"):
        added.append(("Date", builder.format_date(identity.now // times.SECOND)))
        drop |= {"date"}
    try:
        return message_parser.rewrite(checked.message, drop=drop, add=added, allow_utf8=checked.is_utf8)
    except message_parser.MessageError as problem:
        raise errors.InvalidRequest(str(problem)) from None


def _is_missing(checked: mime_validation.CheckedMime, name: str) -> bool:
    """An empty field counts as missing."""
    return name not in checked.fields or not checked.fields[name][0].value
