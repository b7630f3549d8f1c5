"""Events in the format of Postmark's webhooks, and how Postmark calls bounces.

An address that is suppressed is `Inactive` there. A message has one `Tag` and is in one message stream.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from postroad.model.bounces import failure_causes, reasons
from postroad.model.events import event_formats, events
from postroad.model.units import identifiers, times

Kind = events.EventType
Fault = reasons.Fault

# Mail that came in. Postmark has it in another place than webhooks, and its JSON has no `RecordType`.
INBOUND: Final = "Inbound"
SOURCES: Final = {
    "Delivery": (Kind.DELIVERED,),
    "Bounce": (Kind.BOUNCED, Kind.BOUNCED_LATER, Kind.FAILED, Kind.EXPIRED),
    "SpamComplaint": (Kind.COMPLAINED,),
    "SubscriptionChange": (Kind.SUPPRESSED,),
    INBOUND: (Kind.RECEIVED,),
}
# The metadata key of the message stream, which Postmark's shapes show as `MessageStream` and not as metadata.
STREAM: Final = "postmark-stream"
DEFAULT_STREAM: Final = "outbound"
INBOUND_STREAM: Final = "inbound"
# Header fields that are members of their own, and those about parts that are taken apart.
_TAKEN: Final = frozenset({"from", "to", "cc", "bcc", "subject", "date", "reply-to"})
_OF_PARTS: Final = "content-"
# What a receiver takes for our verdict, so nobody else's is passed on.
_VERDICTS: Final = ("x-spam-", "received-spf")


class BounceType(NamedTuple):
    """A type of bounce: its name, its code, and what Postmark says of it."""

    name: str
    code: int
    title: str
    description: str


HARD: Final = BounceType(
    "HardBounce", 1, "Hard bounce", "The mailbox does not exist, or the server refused the message for good."
)
TRANSIENT: Final = BounceType("Transient", 2, "Message delayed", "The message could not be delivered for a while.")
DNS_ERROR: Final = BounceType("DnsError", 256, "DNS error", "The domain of the address has no usable mail host.")
SPAM_NOTIFICATION: Final = BounceType(
    "SpamNotification", 512, "Spam notification", "The server took the message for spam."
)
UNKNOWN: Final = BounceType("Unknown", 2048, "Unknown", "The bounce could not be classified.")
SOFT: Final = BounceType("SoftBounce", 4096, "Soft bounce", "The mailbox is full or not available for a while.")
VIRUS: Final = BounceType("VirusNotification", 8192, "Virus notification", "The server found malware in the message.")
BAD_ADDRESS: Final = BounceType("BadEmailAddress", 100_000, "Invalid email address", "The address is malformed.")
COMPLAINT: Final = BounceType("SpamComplaint", 100_001, "Spam complaint", "The recipient reported the message as spam.")
SUPPRESSED: Final = BounceType(
    "ManuallyDeactivated", 100_002, "Manually deactivated", "The address is on the suppression list."
)
UNSUBSCRIBED: Final = BounceType("Unsubscribe", 16, "Unsubscribe request", "The recipient has left the list.")
BLOCKED: Final = BounceType("Blocked", 100_006, "ISP block", "The server blocks this content or this sender.")
DMARC: Final = BounceType("DMARCPolicy", 100_009, "DMARC policy", "The message did not pass the checks of its sender.")

_BY_CAUSE: Final = {
    events.SUPPRESSED_CAUSE: SUPPRESSED,
    failure_causes.UNSUBSCRIBED: UNSUBSCRIBED,
    "bad_address": BAD_ADDRESS,
    "domain_not_found": DNS_ERROR,
    "null_mx": DNS_ERROR,
    "dns_failed": DNS_ERROR,
    "no_route": DNS_ERROR,
    "spam_suspected": SPAM_NOTIFICATION,
    "malware_suspected": VIRUS,
    "mailbox_full": SOFT,
    "mailbox_unavailable": SOFT,
    "mailbox_busy": SOFT,
    "not_authenticated": DMARC,
}
_BY_FAULT: Final = {
    Fault.ADDRESS: HARD,
    Fault.CONTENT: BLOCKED,
    Fault.POLICY: BLOCKED,
    Fault.REPUTATION: BLOCKED,
    Fault.RATE: TRANSIENT,
    Fault.NETWORK: TRANSIENT,
}
_REASONS: Final = {"bounce": "HardBounce", "late_bounce": "HardBounce", "complaint": "SpamComplaint"}


def bounce_type(cause: str) -> BounceType:
    """How Postmark calls a cause (`docs/bounces.md`)."""
    reason = reasons.REASONS.get(cause)
    fault = reason.fault if reason is not None else None
    return _BY_CAUSE.get(cause) or (UNKNOWN if fault is None else _BY_FAULT.get(fault, UNKNOWN))


def bounce_id(recipient_id: str) -> int:
    """The number of a recipient's bounce: the time in its id, by which `bounces.py` finds it again."""
    return identifiers.time_of(recipient_id, identifiers.RECIPIENT)


def stream_of(metadata: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The message stream that stored metadata names, and the caller's own metadata."""
    own = dict(metadata)
    return own.pop(STREAM, DEFAULT_STREAM), own


def translate(event: events.EmailEvent) -> tuple[str, bytes]:
    """The record type of an event, and its bytes."""
    name = next(name for name, kinds in SOURCES.items() if event.kind in kinds)
    data = event.data
    stream, metadata = stream_of(data.metadata)
    members = {
        "RecordType": name,
        "MessageID": data.email_id,
        "ServerID": 0,
        "MessageStream": stream,
        "Tag": data.tags[0] if data.tags else "",
        "Metadata": metadata,
        **_OWN_MEMBERS[name](event),
    }
    return name, msgspec.json.encode(members)


def translate_received(event: events.ReceivedEvent) -> tuple[str, bytes]:
    """A mail that came in."""
    data, found = event.data, event.data.addresses
    author = found.from_[0] if found.from_ else events.ReceivedAddress(data.sender)
    is_named = any(each.address.lower() == data.to.lower() for each in (*found.to, *found.cc))
    hidden = () if is_named else (events.ReceivedAddress(data.to),)
    members = {
        "FromName": author.name,
        "MessageStream": INBOUND_STREAM,
        "From": author.address,
        "FromFull": _full(author),
        **_addresses("To", found.to),
        **_addresses("Cc", found.cc),
        **_addresses("Bcc", hidden),
        "OriginalRecipient": data.to,
        "Subject": data.subject,
        "MessageID": data.inbound_id,
        "ReplyTo": ", ".join(map(str, found.reply_to)),
        "MailboxHash": _mailbox_hash(data.to),
        "Date": next((field.value for field in data.headers if field.name.lower() == "date"), ""),
        "TextBody": data.text or "",
        "HtmlBody": data.html or "",
        "StrippedTextReply": "",
        "Tag": "",
        "Headers": _headers(data),
        "Attachments": [
            _attachment(file, content) for file, content in zip(data.attachments, event.files, strict=True)
        ],
    }
    return INBOUND, msgspec.json.encode(members)


def _addresses(name: str, found: Sequence[events.ReceivedAddress]) -> dict[str, Any]:
    return {name: ", ".join(map(str, found)), f"{name}Full": [_full(each) for each in found]}


def _full(each: events.ReceivedAddress) -> dict[str, str]:
    return {"Email": each.address, "Name": each.name, "MailboxHash": _mailbox_hash(each.address)}


def _mailbox_hash(address: str) -> str:
    return address.rpartition("@")[0].partition("+")[2]


def _headers(data: events.ReceivedData) -> list[dict[str, str]]:
    """The header with our verdicts. `Return-Path` was written here, and comes first as it does there."""
    verdicts = [("Received-SPF", data.authentication.spf.result.capitalize())]
    if data.spam is not None:
        verdicts.append(("X-Spam-Status", "Yes" if data.spam.is_spam else "No"))
        verdicts.append(("X-Spam-Score", f"{data.spam.score:g}"))
    kept = [
        (field.name, field.value)
        for field in data.headers
        if (name := field.name.lower()) not in _TAKEN and not name.startswith((_OF_PARTS, *_VERDICTS))
    ]
    return [{"Name": name, "Value": value} for name, value in (*kept[:1], *verdicts, *kept[1:])]


def _attachment(file: events.ReceivedFile, content: bytes | None) -> dict[str, Any]:
    """A file, with its URL in place of a content that is too large: nobody takes that for an empty file."""
    members: dict[str, Any] = {"Name": file.filename, "ContentType": file.content_type, "ContentLength": file.size}
    members |= {"Url": file.url} if content is None else {"Content": content}  # base64 in JSON
    return members | ({"ContentID": file.content_id} if file.content_id else {})


def ping(created_at: int) -> bytes:
    """The bytes of a test event. Postmark has none; receivers ignore a record type that they do not know."""
    members = {"RecordType": "Test", "Subject": events.PING_SUBJECT, "CreatedAt": times.to_wire(created_at)}
    return msgspec.json.encode(members)


def _delivery(event: events.EmailEvent) -> dict[str, Any]:
    return {
        "Recipient": event.data.to,
        "DeliveredAt": times.to_wire(event.at),
        "Details": events.reply(event.data),
    }


def _bounce(event: events.EmailEvent) -> dict[str, Any]:
    return _bounced(event, bounce_type(event.data.cause), is_listed=event.kind is not Kind.BOUNCED_LATER)


def _complaint(event: events.EmailEvent) -> dict[str, Any]:
    return _bounced(event, COMPLAINT, is_listed=False)


def _bounced(event: events.EmailEvent, bounce: BounceType, *, is_listed: bool) -> dict[str, Any]:
    """The members of a bounce. Only what `/bounces` lists has a dump and can be activated there."""
    data = event.data
    return {
        "ID": bounce_id(data.recipient_id),
        "Type": bounce.name,
        "TypeCode": bounce.code,
        "Name": bounce.title,
        "Description": bounce.description,
        "Details": events.reply(data),
        "Email": data.to,
        "From": data.header_from,
        "BouncedAt": times.to_wire(event.at),
        "DumpAvailable": is_listed,
        "Inactive": event.is_suppressed,
        "CanActivate": is_listed and event.is_suppressed,
        "Subject": data.subject,
    }


def _subscription_change(event: events.EmailEvent) -> dict[str, Any]:
    source = event.data.source if isinstance(event.data, events.SuppressedData) else ""
    return {
        "Recipient": event.data.to,
        "ChangedAt": times.to_wire(event.at),
        "Origin": "Recipient",
        "SuppressSending": True,
        "SuppressionReason": _REASONS[source],
    }


_OWN_MEMBERS: Final = {
    "Delivery": _delivery,
    "Bounce": _bounce,
    "SpamComplaint": _complaint,
    "SubscriptionChange": _subscription_change,
}
FORMAT: Final = event_formats.EventFormat(
    name="postmark", sources=SOURCES, translate=translate, translate_received=translate_received, ping=ping
)
