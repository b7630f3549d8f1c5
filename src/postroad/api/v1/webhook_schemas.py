"""What `/v1/webhook` takes and answers: Structs, and how they are made of rows.

A secret is in the answer to the request that made it, and in no other.
"""

from typing import Annotated, Final, Literal

import msgspec

from postroad.api.v1 import schemas
from postroad.model import cursors, identifiers, times, webhook_urls
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage import webhook_attempts as stored_attempts
from postroad.storage import webhooks as stored

# As much of a request's body as the log shows, in bytes.
SHOWN_BYTES: Final = 2048

EventName = Literal["email.delivered", "email.bounced", "email.failed"]
DeliveryEventName = Literal["email.delivered", "email.bounced", "email.failed", "webhook.test"]
Secret = Annotated[
    str,
    msgspec.Meta(
        description="What signs every request to the URL, `whsec_` included. It can never be read again.",
        extra_json_schema={"pattern": "^whsec_"},
    ),
]


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """Where the account is told. `secret_hint` is how its secret ends."""

    url: str
    events: list[EventName]
    enabled: bool
    created_at: times.WireTime
    updated_at: times.WireTime
    secret_hint: str


class WebhookResponse(msgspec.Struct, frozen=True):
    """The account's webhook; null when it has none."""

    webhook: Webhook | None
    request_id: str


class WebhookRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the webhook is to be from now on."""

    url: Annotated[
        str,
        msgspec.Meta(
            description="An `https` URL with a public host, to which events are posted.",
            extra_json_schema={"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://", "maxLength": webhook_urls.MAX_CHARACTERS},
        ),
    ]
    events: (
        Annotated[list[EventName], msgspec.Meta(description="What to tell; everything when it is empty or left out.")]
        | None
    ) = None
    enabled: (
        Annotated[
            bool,
            msgspec.Meta(
                description="True unless told otherwise. False: nothing new is told, and what is pending is held."
            ),
        ]
        | None
    ) = None


class SavedWebhook(msgspec.Struct, frozen=True, kw_only=True):
    """The webhook as it is now; with its secret when this request has made it, and only then."""

    webhook: Webhook
    secret: Secret | msgspec.UnsetType = msgspec.UNSET
    request_id: str


class SecretRotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the old secret is still good."""

    overlap_hours: (
        Annotated[
            int,
            msgspec.Meta(
                ge=1,
                le=endpoints.MAX_OVERLAP_HOURS,
                description="The current secret signs beside the new one for so long; else all old ones stop at once.",
            ),
        ]
        | None
    ) = None


class RotatedSecret(msgspec.Struct, frozen=True):
    """The new secret."""

    secret: Secret
    request_id: str


class WebhookAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the receiver, and its answer, cut at 2 KB."""

    at: times.WireTime
    status_code: int | None
    duration_ms: float
    response_body: str | None
    error: Annotated[
        str | None, msgspec.Meta(description="A code, a colon, and why it failed, where no status says so.")
    ]


class WebhookDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was told, or is to be, with every attempt."""

    id: str
    event_id: str
    event_type: DeliveryEventName
    message_id: str | None
    recipient_id: str | None
    replay_of: Annotated[str | None, msgspec.Meta(description="The delivery of which this is a replay.")]
    url: str
    status: delivery_log.Status
    attempt_count: int
    next_attempt_at: Annotated[
        times.WireTime | None,
        msgspec.Meta(description="When it is due; null when it is final or held, and while an attempt is under way."),
    ]
    created_at: times.WireTime
    request_body: Annotated[str, msgspec.Meta(description="What is posted, cut at 2 KB.")]
    attempts: list[WebhookAttempt]


class WebhookDeliveryResponse(msgspec.Struct, frozen=True):
    """One delivery."""

    delivery: WebhookDelivery
    request_id: str


class WebhookDeliveriesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which part of the log."""

    message_id: Annotated[str, msgspec.Meta(min_length=1, description="Only deliveries about this message.")] | None = (
        None
    )
    status: Annotated[delivery_log.Status | None, msgspec.Meta(description="Only deliveries in this state.")] = None
    limit: schemas.Limit | None = cursors.DEFAULT_LIMIT
    before: (
        Annotated[
            str,
            msgspec.Meta(
                description="`next_before` of the part before, or the `id` of its last delivery; absent for the first "
                "part.",
                extra_json_schema={"pattern": identifiers.pattern(identifiers.WEBHOOK_DELIVERY)},
            ),
        ]
        | None
    ) = None


class WebhookDeliveriesResponse(msgspec.Struct, frozen=True):
    """Deliveries of the last 7 days, newest first."""

    deliveries: list[WebhookDelivery]
    next_before: Annotated[
        str | None,
        msgspec.Meta(
            description="Asks for older ones as `before`; null when there are none. With a `status` a part may be "
            "empty and not be the last."
        ),
    ]
    request_id: str


class FailedReplay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of which time the events are that are to be told again."""

    after: Annotated[schemas.Timestamp, msgspec.Meta(description="Events of this time or later, RFC 3339.")]
    before: Annotated[schemas.Timestamp, msgspec.Meta(description="Events from before this time, RFC 3339.")]


class FailedReplayResponse(msgspec.Struct, frozen=True):
    """How many events are told again."""

    replayed: int
    has_more: Annotated[bool, msgspec.Meta(description="True when a part of the period is still to be looked at.")]
    next_after: Annotated[
        times.WireTime | None, msgspec.Meta(description="Asks for that part as `after`; null when there is none.")
    ]
    request_id: str


def webhook(row: stored.Webhook) -> Webhook:
    """The webhook as its account sees it."""
    return Webhook(
        url=row.url,
        events=msgspec.convert(row.events.split(), list[EventName]),
        enabled=bool(row.enabled),
        created_at=times.to_wire(row.created_at),
        updated_at=times.to_wire(row.updated_at),
        secret_hint=row.secret_hint,
    )


def delivery(entry: delivery_log.Entry) -> WebhookDelivery:
    """An entry of the log as its account sees it."""
    row = entry.delivery
    return WebhookDelivery(
        id=row.id,
        event_id=row.event_id,
        event_type=msgspec.convert(row.event_type, DeliveryEventName),
        message_id=row.message_id,
        recipient_id=row.recipient_id,
        replay_of=row.replay_of,
        url=row.url,
        status=entry.status,
        attempt_count=row.attempt_count,
        next_attempt_at=times.optional_to_wire(entry.next_attempt_at),
        created_at=times.to_wire(row.created_at),
        # The bytes are UTF-8; only a character that was cut in two is left out.
        request_body=row.body[:SHOWN_BYTES].decode(errors="ignore"),
        attempts=[_attempt(attempt) for attempt in entry.attempts],
    )


def _attempt(row: stored_attempts.Attempt) -> WebhookAttempt:
    return WebhookAttempt(
        at=times.to_wire(row.started_at),
        status_code=row.status_code,
        duration_ms=row.duration / 1_000,
        response_body=row.response_body,
        error=row.error,
    )
