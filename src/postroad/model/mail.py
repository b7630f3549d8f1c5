"""A message as a door hands it in, and the words for its states (docs/api.md, "Read")."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

TemplateValue = str | int | float | bool


class Source(StrEnum):
    """The door a message came through."""

    API = "api"
    SMTP = "smtp"
    TEST = "test"


class MessageStatus(StrEnum):
    """`queued` until every recipient is final."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    PARTIAL = "partial"
    FAILED = "failed"


class RecipientStatus(StrEnum):
    """Where a recipient is; a state in `FINAL` never changes."""

    QUEUED = "queued"
    DEFERRED = "deferred"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    FAILED = "failed"


FINAL: Final = (RecipientStatus.DELIVERED, RecipientStatus.BOUNCED, RecipientStatus.FAILED)


class BillingStatus(StrEnum):
    """`reserved` until final; then `settled`, or `released` when the credit went back."""

    RESERVED = "reserved"
    SETTLED = "settled"
    RELEASED = "released"


class Attachment(msgspec.Struct, frozen=True):
    """A file as the caller gave it; `content` is still base64."""

    filename: str
    content: str
    content_type: str | None = None
    content_id: str | None = None


class RawMessage(msgspec.Struct, frozen=True):
    """A finished message with its envelope, as it came over SMTP. Nothing is checked yet.

    An empty `sender` is the null reverse-path; `trace` is the value of the Received field that the door adds;
    `is_utf8` says that the client asked for SMTPUTF8 (RFC 6531). `is_of_lines` says that the door has looked for a bare
    CR or LF in the content, and there is none.
    """

    sender: str
    recipients: tuple[str, ...]
    content: bytes
    trace: str
    is_utf8: bool = False
    has_only_crlf: bool = False


class SendRequest(msgspec.Struct, frozen=True):
    """What a caller wants sent: the fields of `POST /emails`, with lone values made lists. Nothing is checked yet."""

    sender: str
    to: tuple[str, ...]
    cc: tuple[str, ...] = ()
    bcc: tuple[str, ...] = ()
    reply_to: str | None = None
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    template: str | None = None
    variables: Mapping[str, TemplateValue] | None = None
    headers: Mapping[str, str] = {}
    tags: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
