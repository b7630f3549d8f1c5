"""A message as it is submitted, and its states (docs/api.md, "Read")."""

from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

# Of a variable; lists and objects are for sections. Their depth and size are bounded (`model/mail/limits.py`).
# Tools that write clients ask for the items of every list.
_Values = Annotated[list[Any], msgspec.Meta(extra_json_schema={"items": {}})]
TemplateValue = str | int | float | bool | _Values | dict[str, Any]


class Source(StrEnum):
    """How a message was submitted."""

    API = "api"
    SMTP = "smtp"
    TEST = "test"


class Mode(StrEnum):
    """Whether mail is delivered, or only goes to the simulator."""

    LIVE = "live"
    TEST = "test"


class MessageStatus(StrEnum):
    """`queued` until every recipient is final."""

    QUEUED = "queued"
    DELIVERED = "delivered"
    PARTIAL = "partial"
    FAILED = "failed"


class RecipientStatus(StrEnum):
    """The state of a recipient; a state in `FINAL` never changes."""

    QUEUED = "queued"
    DEFERRED = "deferred"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


FINAL: Final = (
    RecipientStatus.DELIVERED,
    RecipientStatus.BOUNCED,
    RecipientStatus.FAILED,
    RecipientStatus.CANCELED,
    RecipientStatus.EXPIRED,
)
# Final without being delivered, and nobody asked for that.
FAILURES: Final = (RecipientStatus.BOUNCED, RecipientStatus.FAILED, RecipientStatus.EXPIRED)


class BillingStatus(StrEnum):
    """`reserved` until final; then `settled`, or `released` when the credit was returned."""

    RESERVED = "reserved"
    SETTLED = "settled"
    RELEASED = "released"


class RawMessage(msgspec.Struct, frozen=True):
    """A complete message with its envelope, as received over SMTP. Nothing is validated yet.

    An empty `sender` is the null reverse-path; `trace` is the value of the Received field that the listener adds;
    `is_utf8` means that the client asked for SMTPUTF8 (RFC 6531). `has_only_crlf` means that the listener has made
    sure that the content has no bare CR or LF.
    """

    sender: str
    recipients: tuple[str, ...]
    content: bytes
    trace: str
    is_utf8: bool = False
    has_only_crlf: bool = False
    send_at: int | None = None
    expires_in: int | None = None


# What was refused, canceled or not delivered in its time costs nothing; a credit is reserved until the result is final.
BILLING: Final = {
    RecipientStatus.QUEUED: BillingStatus.RESERVED,
    RecipientStatus.DEFERRED: BillingStatus.RESERVED,
    RecipientStatus.DELIVERED: BillingStatus.SETTLED,
    RecipientStatus.FAILED: BillingStatus.SETTLED,
    RecipientStatus.BOUNCED: BillingStatus.RELEASED,
    RecipientStatus.CANCELED: BillingStatus.RELEASED,
    RecipientStatus.EXPIRED: BillingStatus.RELEASED,
}


def message_status(*, recipients: int, delivered: int) -> MessageStatus:
    """The status of a message whose recipients are all final."""
    if delivered == recipients:
        return MessageStatus.DELIVERED
    return MessageStatus.PARTIAL if delivered else MessageStatus.FAILED


def message_billing(*, recipients: int, released: int) -> BillingStatus:
    """The billing of a message whose recipients are all final."""
    return BillingStatus.RELEASED if released == recipients else BillingStatus.SETTLED
