"""From a validated MIME message to everything that is stored.

Pure: ids and time are arguments. The message is sent unchanged except for a few fields: a trace field is prepended (RFC
5321 section 4.4), a missing Message-ID or Date is added (RFC 6409 sections 8.2 and 8.3), and fields that are only for
Postroad, that name blind copy recipients, or that only receiving hosts may write are removed.
"""

from typing import Final

import msgspec

from postroad import errors
from postroad.model import receipt, times
from postroad.protocol.mime import builder, message_parser
from postroad.services.acceptance import compose, mime_validation, transaction

# The second line is written by receiving hosts. The third would show a sender that was not validated.
DROPPED: Final = frozenset(
    f"bcc idempotency-key {mime_validation.TEMPLATE} {mime_validation.VARIABLES} "
    "return-path authentication-results delivered-to errors-to "
    "resent-from resent-sender resent-reply-to resent-to resent-cc resent-bcc resent-date resent-message-id".split()
)
_encoder: Final = msgspec.json.Encoder()


def compose_mime(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> transaction.Submission:
    """Everything that the accepting transaction stores. Raises InvalidRequest and PayloadTooLarge."""
    return compose.build_submission(
        identity,
        sender=checked.sender,
        recipients=checked.recipients,
        subject=checked.subject,
        tags=checked.tags,
        body=_body(checked, identity),
        response=_encoder.encode(_receipt(checked, identity)),
    )


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


def _receipt(checked: mime_validation.CheckedMime, identity: compose.MessageIdentity) -> receipt.Receipt:
    count = len(checked.recipients)
    return receipt.Receipt(
        id=identity.message_id,
        source=identity.source.value,
        request_id=identity.request_id,
        sender=checked.sender.written,
        to=tuple(mailbox.written for mailbox in checked.to),
        cc=tuple(mailbox.written for mailbox in checked.cc),
        bcc=tuple(mailbox.written for mailbox in checked.hidden),
        reply_to=checked.reply_to[0].written if checked.reply_to else msgspec.UNSET,
        subject=checked.subject,
        recipient_count=count,
        credits_reserved=count,
        headers={},
        tags=checked.tags,
        attachments=(),
    )
