"""The message as it is returned, and what the OpenAPI document adds to the send request: rules and examples.

`SEND_RULES` are the rules across several members of `model/send_request.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from postroad.model import batch_request, identifiers, limits, mail, times
from postroad.services.queue import inspection, wait_reasons
from postroad.storage import messages, queue_views, recipients


def _given(member: str, **rule: object) -> dict[str, Any]:
    return {"required": [member], "properties": {member: rule}}


def _not_given(*members: str) -> dict[str, Any]:
    return {"properties": {member: {"type": "null"} for member in members}}


SEND_RULES: Final = {
    "allOf": [
        {
            "anyOf": [
                _given("text", type="string", minLength=1),
                _given("html", type="string", minLength=1),
                _given("attachments", type="array", minItems=1),
                _given("template", type="string"),
            ]
        },
        {"anyOf": [_given("subject", type="string"), _given("template", type="string")]},
        {"anyOf": [_not_given("template"), _not_given("text", "html")]},
        {"anyOf": [_not_given("variables"), _given("template", type="string")]},
    ]
}


SEND_EXAMPLES: Final[tuple[dict[str, Any], ...]] = (
    {
        "from": "Shop <hello@example.com>",
        "to": ["Ada <ada@example.net>"],
        "subject": "Your receipt",
        "text": "Thank you for your order.",
        "html": "<p>Thank you for your <b>order</b>.</p>",
        "tags": ["receipt"],
        "metadata": {"order": "1042"},
        "attachments": [{"filename": "receipt.txt", "content": "VG90YWw6IDQyLjAwCg=="}],
    },
    {"from": "hello@example.com", "to": "ada@example.net", "template": "welcome", "variables": {"name": "Ada"}},
    {
        "from": "hello@example.com",
        "to": "ada@example.net",
        "subject": "Your login code",
        "text": "123456",
        "expires_in": 120,
    },
    {
        "from": "hello@example.com",
        "to": "ada@example.net",
        "subject": "Your receipt",
        "text": "Thank you for your order.",
        "simulate": {"provider": "google", "behaviour": "rate_limited"},
    },
)


BATCH_RULES: Final = {
    "oneOf": [
        {
            **_given("emails", type="array"),
            "properties": {
                "emails": {"type": "array"},
                **_not_given("recipients", *batch_request.COMMON.values())["properties"],
            },
        },
        {
            "required": ["recipients", "template", "from"],
            "properties": {
                "recipients": {"type": "array"},
                "template": {"type": "string"},
                "from": {"type": "string"},
                **_not_given("emails")["properties"],
            },
        },
    ]
}


BATCH_EXAMPLES: Final[tuple[dict[str, Any], ...]] = (
    {
        "emails": [
            {
                "from": "Shop <hello@example.com>",
                "to": "ada@example.net",
                "subject": "Your receipt",
                "text": "Thank you for your order.",
                "metadata": {"order": "1042"},
            },
            {
                "from": "Shop <hello@example.com>",
                "to": "grace@example.org",
                "subject": "Your parcel",
                "text": "It is on its way.",
            },
        ],
        "all_or_nothing": False,
    },
    {
        "from": "hello@example.com",
        "template": "welcome",
        "tags": ["welcome"],
        "recipients": [
            {"to": "ada@example.net", "variables": {"name": "Ada"}, "metadata": {"customer": "1"}},
            {"to": "grace@example.org", "variables": {"name": "Grace"}},
        ],
    },
)


RESCHEDULE_EXAMPLES: Final[tuple[dict[str, Any], ...]] = ({"send_at": "2026-01-31T12:00:00Z"}, {"send_at": None})


QueueState = Annotated[
    str,
    msgspec.Meta(
        description="`waiting` for its next attempt, `scheduled` by its sender, `ready` for a connection, `sending`, "
        "or `held` by the operator.",
        extra_json_schema={"enum": list(queue_views.STATES)},
    ),
]


class WaitReason(msgspec.Struct, frozen=True):
    """Why a recipient is not delivered yet."""

    code: wait_reasons.Code
    text: Annotated[
        str,
        msgspec.Meta(
            description="The same for people, with the time of the next attempt in UTC and the recipients ahead.",
            examples=[
                "Google is deferring us with 4.7.28; next attempt at 2026-01-31 14:05:00 UTC; 312 recipients ahead"
            ],
        ),
    ]


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A recipient in the queue: when it is tried next, and why not earlier."""

    state: QueueState
    next_attempt_at: Annotated[
        times.WireTime | None,
        msgspec.Meta(description="Null when it is being sent, is held, or is sent when its turn comes."),
    ]
    reason: WaitReason
    ahead: Annotated[
        int,
        msgspec.Meta(
            description="Recipients of this account at the same domain that are sent before this one. 1001 stands for "
            "more than 1,000.",
            ge=0,
            le=wait_reasons.MAX_AHEAD + 1,
        ),
    ]


class Recipient(msgspec.Struct, frozen=True):
    """One recipient and its delivery status."""

    id: str
    email: str
    status: mail.RecipientStatus
    billing_status: mail.BillingStatus
    attempt_count: int
    last_smtp_code: int | None
    last_smtp_response: str | None
    delivered_at: times.WireTime | None
    bounced_at: times.WireTime | None
    queue: Annotated[
        QueueEntry | msgspec.UnsetType | None, msgspec.Meta(description="Null when the recipient is not queued.")
    ] = msgspec.UNSET


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message and its recipients."""

    id: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": identifiers.pattern(identifiers.MESSAGE)})]
    status: mail.MessageStatus
    source: mail.Source
    sender: str = msgspec.field(name="from")
    subject: str
    billing_status: mail.BillingStatus
    recipient_count: int
    credits_reserved: int
    created_at: times.WireTime
    recipients: list[Recipient]
    request_id: str
    # Where the sender gave them.
    send_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    expires_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    # Only of a test message.
    test: Literal[True] | msgspec.UnsetType = msgspec.UNSET


class Reschedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When to send a scheduled message."""

    send_at: Annotated[
        Annotated[str, msgspec.Meta(examples=["2026-01-31T12:00:00Z"], extra_json_schema={"format": "date-time"})]
        | None,
        msgspec.Meta(
            description=f"RFC 3339 with a time zone, up to {limits.SEND_AT_DAYS} days ahead; `null` sends it now."
        ),
    ]


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The new times of a message."""

    id: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": identifiers.pattern(identifiers.MESSAGE)})]
    status: mail.MessageStatus
    send_at: times.WireTime
    expires_at: times.WireTime | msgspec.UnsetType = msgspec.UNSET
    request_id: str


class CanceledRecipient(msgspec.Struct, frozen=True):
    """A recipient after the cancellation."""

    id: str
    email: str
    canceled: Annotated[bool, msgspec.Meta(description="Whether it is canceled, by this request or an earlier one.")]
    status: mail.RecipientStatus


class Cancellation(msgspec.Struct, frozen=True, kw_only=True):
    """What became of each recipient."""

    id: Annotated[str, msgspec.Meta(extra_json_schema={"pattern": identifiers.pattern(identifiers.MESSAGE)})]
    recipients: list[CanceledRecipient]
    request_id: str


QueueEntries = Mapping[str, inspection.QueueEntry]


def recipient(row: recipients.Recipient, queue_entries: QueueEntries | None = None) -> Recipient:
    """A stored recipient in its public form, with its queue entry where they are given."""
    return Recipient(
        id=row.id,
        email=row.email,
        status=mail.RecipientStatus(row.status),
        billing_status=mail.BillingStatus(row.billing_status),
        attempt_count=row.attempt_count,
        last_smtp_code=row.last_smtp_code,
        last_smtp_response=row.last_smtp_response,
        delivered_at=times.optional_to_wire(row.delivered_at),
        bounced_at=times.optional_to_wire(row.bounced_at),
        queue=msgspec.UNSET if queue_entries is None else _queue_entry(row, queue_entries),
    )


def test_mark(row: messages.Message) -> Literal[True] | msgspec.UnsetType:
    """Only test messages have the member."""
    return True if row.is_test else msgspec.UNSET


def _queue_entry(row: recipients.Recipient, queue_entries: QueueEntries) -> QueueEntry | None:
    entry = queue_entries.get(row.id)
    # The queue is read before the recipients, so that each that is not final has its entry.
    if entry is None or row.status in mail.FINAL:
        return None
    return QueueEntry(
        state=entry.waiting.state,
        next_attempt_at=times.optional_to_wire(entry.reason.next_attempt_at),
        reason=WaitReason(entry.reason.code, entry.reason.sentence),
        ahead=entry.reason.ahead or 0,
    )


def message(
    row: messages.Message,
    its_recipients: Sequence[recipients.Recipient],
    *,
    request_id: str,
    queue_entries: QueueEntries | None = None,
) -> Message:
    """A stored message in its public form."""
    return Message(
        id=row.id,
        status=mail.MessageStatus(row.status),
        source=mail.Source(row.source),
        sender=row.sender,
        subject=row.subject,
        billing_status=mail.BillingStatus(row.billing_status),
        recipient_count=row.recipient_count,
        credits_reserved=row.credits_reserved,
        created_at=times.to_wire(row.created_at),
        recipients=[recipient(one, queue_entries) for one in its_recipients],
        request_id=request_id,
        send_at=times.given_to_wire(row.send_at),
        expires_at=times.given_to_wire(row.expires_at),
        metadata=msgspec.UNSET if row.metadata is None else msgspec.json.decode(row.metadata, type=dict[str, str]),
        test=test_mark(row),
    )


def schedule(row: messages.Message, *, request_id: str) -> Schedule:
    """The times of a message that was moved."""
    return Schedule(
        id=row.id,
        status=mail.MessageStatus(row.status),
        send_at=times.to_wire(row.send_at or row.created_at),
        expires_at=times.given_to_wire(row.expires_at),
        request_id=request_id,
    )


def cancellation(message_id: str, after: Sequence[recipients.Recipient], *, request_id: str) -> Cancellation:
    """The recipients of a message after it was canceled as far as possible."""
    shown = [
        CanceledRecipient(
            id=one.id,
            email=one.email,
            canceled=one.status == mail.RecipientStatus.CANCELED,
            status=mail.RecipientStatus(one.status),
        )
        for one in after
    ]
    return Cancellation(id=message_id, recipients=shown, request_id=request_id)
