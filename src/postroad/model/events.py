"""Webhook events and their JSON.

The bytes of an event are made once, here; retries and replays send the same ones, and the signature covers them. Empty
members are omitted. Foreign text is truncated.
"""

from enum import StrEnum
from typing import Final

import msgspec

from postroad.model import mail, times

SUBJECT_CHARACTERS: Final = 200
RESPONSE_CHARACTERS: Final = 500
PING_SUBJECT: Final = "Postroad webhook test"


class EventType(StrEnum):
    """What happened."""

    DELIVERED = "email.delivered"
    BOUNCED = "email.bounced"
    FAILED = "email.failed"
    TEST = "webhook.test"


# What an endpoint can subscribe to. A test event is sent on request.
SUBSCRIBABLE: Final = (EventType.DELIVERED, EventType.BOUNCED, EventType.FAILED)
OF_STATUS: Final = {
    mail.RecipientStatus.DELIVERED: EventType.DELIVERED,
    mail.RecipientStatus.BOUNCED: EventType.BOUNCED,
    mail.RecipientStatus.FAILED: EventType.FAILED,
}


class Data(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The recipient whose result is final."""

    email_id: str = ""
    recipient_id: str = ""
    to: str = ""
    sender: str = msgspec.field(default="", name="from")
    subject: str = ""
    smtp_code: int | None = None
    smtp_response: str = ""
    test: bool = False


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The event. Endpoints deduplicate by `id`."""

    id: str
    type: EventType
    created_at: str
    data: Data


def body(event_id: str, kind: EventType, *, created_at: int, data: Data) -> bytes:
    """The bytes of an event; `created_at` is microseconds."""
    event = Event(id=event_id, type=kind, created_at=times.to_wire(created_at), data=data)
    return msgspec.json.encode(event)


def ping(event_id: str, *, created_at: int) -> bytes:
    """The bytes of a test event."""
    data = Data(subject=PING_SUBJECT, test=True)
    return body(event_id, EventType.TEST, created_at=created_at, data=data)


def recipient(
    *, email_id: str, recipient_id: str, to: str, sender: str, subject: str, smtp_code: int | None, response: str
) -> Data:
    """The data of a recipient, with long texts truncated."""
    return Data(
        email_id=email_id,
        recipient_id=recipient_id,
        to=to,
        sender=sender,
        subject=subject[:SUBJECT_CHARACTERS],
        smtp_code=smtp_code,
        smtp_response=response[:RESPONSE_CHARACTERS],
    )
