"""The receipt: the response to an accepted submission or batch (docs/api.md, "Send").

It is encoded once, stored with the message, and sent again byte for byte when its idempotency key is replayed.
"""

from typing import Literal

import msgspec

from postroad.model import times


class AttachmentReceipt(msgspec.Struct, frozen=True):
    """An attachment as accepted; `size` is the decoded size in bytes."""

    filename: str
    content_type: str
    size: int
    content_id: str | msgspec.UnsetType = msgspec.UNSET


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted message. Addresses are returned as written."""

    id: str
    status: Literal["queued"] = "queued"
    source: Literal["api", "smtp", "test"]
    request_id: str
    sender: str = msgspec.field(name="from")
    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    # A list where several were given.
    reply_to: str | tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    subject: str
    billing_status: Literal["reserved", "settled", "released"] = "reserved"
    recipient_count: int
    credits_reserved: int
    headers: dict[str, str]
    tags: tuple[str, ...]
    attachments: tuple[AttachmentReceipt, ...]
    # Where the sender gave them.
    send_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    expires_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    # Only of a message that sends another one again.
    resend_of: str | msgspec.UnsetType = msgspec.UNSET
    # Only of a test message.
    test: Literal[True] | msgspec.UnsetType = msgspec.UNSET

    @property
    def reply_to_addresses(self) -> tuple[str, ...]:
        """The addresses of `reply_to`, however many."""
        if isinstance(self.reply_to, tuple):
            return self.reply_to
        return () if self.reply_to is msgspec.UNSET else (self.reply_to,)


class ItemError(msgspec.Struct, frozen=True):
    """Why an item of a batch was refused."""

    code: str
    message: str


class BatchResult(msgspec.Struct, frozen=True):
    """The result of one item of a batch: the id of its message, or its error."""

    id: str | msgspec.UnsetType = msgspec.UNSET
    error: ItemError | msgspec.UnsetType = msgspec.UNSET


class BatchReceipt(msgspec.Struct, frozen=True):
    """The results of a batch, in the order of its items."""

    results: tuple[BatchResult, ...]
    request_id: str
