"""Events in the format of Resend's webhooks: `{type, created_at, data}`.

Members have the names and types of the `resend` packages. `data.to` has the one recipient that the event is about.
Resend's tags are names with values, as our metadata.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from postroad.model.bounces import failure_causes
from postroad.model.events import event_formats, events
from postroad.model.units import identifiers, times
from postroad.protocol.signatures import webhook_signature

Kind = events.EventType

SOURCES: Final = {
    "email.sent": (Kind.ACCEPTED,),
    "email.scheduled": (Kind.ACCEPTED,),
    "email.delivered": (Kind.DELIVERED,),
    "email.delivery_delayed": (Kind.DEFERRED,),
    "email.complained": (Kind.COMPLAINED,),
    "email.bounced": (Kind.BOUNCED, Kind.BOUNCED_LATER),
    "email.failed": (Kind.FAILED, Kind.EXPIRED),
    "email.suppressed": (Kind.BOUNCED,),
    "suppression.added": (Kind.SUPPRESSED,),
    "email.received": (Kind.RECEIVED,),
}
# The subtypes of bounces that a receiver may look for; all others are `General`.
SUBTYPES: Final = {
    "mailbox_full": "MailboxFull",
    "message_too_large": "MessageTooLarge",
    "spam_suspected": "ContentRejected",
    "content_refused": "ContentRejected",
    "malware_suspected": "AttachmentRejected",
}
# What an event has of a file.
ANNOUNCED: Final = ("id", "filename", "content_type", "content_disposition", "content_id")
_ORIGINS: Final = {"bounce": "bounce", "late_bounce": "bounce", "complaint": "complaint"}
_SUPPRESSED: Final = "The address is on the suppression list, so the message was not sent to it."


def translate(event: events.EmailEvent) -> tuple[str, bytes]:
    """The name of an event, and its bytes."""
    data = event.data
    if event.kind is Kind.SUPPRESSED:
        return _event("suppression.added", event.at, _suppression(event))
    members = {
        "created_at": times.to_wire(identifiers.time_of(data.email_id, identifiers.MESSAGE)),
        "email_id": data.email_id,
        "message_id": event.message_id,
        "from": data.header_from,
        "to": [data.to],
        "subject": data.subject,
        "tags": data.metadata,
    }
    name = _name(event)
    if name == "email.bounced":
        sub_type = SUBTYPES.get(data.cause, "General")
        message = f"The recipient's mail server sent a bounce message: {events.reply(data)}"
        members["bounce"] = {"message": message, "subType": sub_type, "type": "Permanent"}
    elif name == "email.suppressed":
        members["suppressed"] = {"message": _SUPPRESSED, "type": "OnAccountSuppressionList"}
    elif name == "email.failed":
        members["failed"] = {"reason": data.cause or events.reply(data)}
    return _event(name, event.at, members)


def translate_received(event: events.ReceivedEvent) -> tuple[str, bytes]:
    """The event of a mail that came in. As there, it has neither the text nor the files; receivers ask for them."""
    data = event.data
    members = {
        "email_id": data.inbound_id,
        "created_at": times.to_wire(event.at),
        **header(data),
        "received_for": [data.to],
        "attachments": [{name: file[name] for name in ANNOUNCED} for file in attachments(data)],
    }
    return _event("email.received", event.at, members)


def header(data: events.ReceivedData) -> dict[str, Any]:
    """Who a received mail is from and for, and what it is about. Its own words: only `headers` has what was checked."""
    found = data.addresses
    return {
        "from": str(found.from_[0]) if found.from_ else data.sender,
        "to": [each.address for each in found.to if each.address] or [data.to],
        "bcc": [],
        "cc": [each.address for each in found.cc if each.address],
        "message_id": data.message_id or "",
        "subject": data.subject,
    }


def attachments(data: events.ReceivedData) -> list[dict[str, Any]]:
    """The files of a received mail. Their ids are places, which stay the same: so does the mail."""
    return [
        {
            "id": f"{data.inbound_id}_{number}",
            "filename": file.filename or None,
            "content_type": file.content_type,
            "content_disposition": file.disposition,
            "content_id": file.content_id or None,
            "size": file.size,
        }
        for number, file in enumerate(data.attachments, start=1)
    ]


def ping(created_at: int) -> bytes:
    """The bytes of a test event. Resend has none; receivers ignore a type that they do not know."""
    return _event(Kind.TEST, created_at, {"subject": events.PING_SUBJECT, "test": True})[1]


def _name(event: events.EmailEvent) -> str:
    if event.kind is Kind.ACCEPTED:
        return "email.scheduled" if event.is_scheduled else "email.sent"
    if event.kind is Kind.BOUNCED and event.data.cause in {events.SUPPRESSED_CAUSE, failure_causes.UNSUBSCRIBED}:
        return "email.suppressed"
    return next(name for name, kinds in SOURCES.items() if event.kind in kinds)


def _suppression(event: events.EmailEvent) -> dict[str, Any]:
    data = event.data
    source = data.source if isinstance(data, events.SuppressedData) else ""
    return {
        "id": data.to,
        "email": data.to,
        "origin": _ORIGINS[source],
        "source_id": data.email_id,
        "created_at": times.to_wire(event.at),
    }


def _event(name: str, at: int, data: dict[str, Any]) -> tuple[str, bytes]:
    return name, msgspec.json.encode({"type": name, "created_at": times.to_wire(at), "data": data})


def sign(secrets: Sequence[str], body: bytes, event_id: str, timestamp: int) -> list[tuple[str, str]]:
    """The signature of Standard Webhooks under the names of Svix, where the specification comes from."""
    signed = webhook_signature.standard_headers(secrets, body, event_id=event_id, timestamp=timestamp)
    return [(name.replace("webhook-", "svix-"), value) for name, value in signed]


FORMAT: Final = event_formats.EventFormat(
    name="resend",
    sources=SOURCES,
    translate=translate,
    translate_received=translate_received,
    ping=ping,
    sign=sign,
)
