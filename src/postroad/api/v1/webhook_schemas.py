"""Requests and responses of `/v1/webhook` and `/v1/webhooks`, and `/v1/event-schemas`: the JSON schemas of events."""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.model.events import events
from postroad.model.mail import send_request
from postroad.model.units import destinations, identifiers, times
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints
from postroad.storage.mail import webhooks as mail_webhooks
from postroad.web import routing

# How much of a request body the log shows, in bytes.
SHOWN_BYTES: Final = 2048

EventName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(events.SUBSCRIBABLE)})]
DeliveryEventName = Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(events.EventType)})]
Secret = Annotated[
    str,
    msgspec.Meta(
        description="The signing secret, including `whsec_`. It is shown only once.",
        extra_json_schema={"pattern": "^whsec_"},
    ),
]
LogPosition = Annotated[
    str,
    resource.id_of(
        identifiers.WEBHOOK_DELIVERY,
        "`next_before` of the previous page, or the `id` of its last delivery; absent for the first page.",
    ),
]
Url = Annotated[
    str,
    msgspec.Meta(
        description="A public `https` URL to which events are posted.",
        extra_json_schema={"pattern": "^[Hh][Tt][Tt][Pp][Ss]?://", "maxLength": destinations.MAX_URL_CHARACTERS},
    ),
]
Events = Annotated[
    list[EventName],
    msgspec.Meta(
        description="Event types to send; when empty, `email.delivered`, `email.bounced` and `email.failed`. "
        "Absent: unchanged; these three for a new webhook."
    ),
]
Enabled = Annotated[
    bool,
    msgspec.Meta(
        description="False: no new events are sent, and pending ones are held. Absent: unchanged; true for a new one."
    ),
]
OverlapHours = Annotated[
    int,
    msgspec.Meta(
        ge=1,
        le=endpoints.MAX_OVERLAP_HOURS,
        description="How long the current secret keeps signing alongside the new one. By default all old "
        "secrets stop at once.",
    ),
]


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """The webhook endpoint. `secret_hint` is the end of the secret."""

    url: str
    events: list[EventName]
    enabled: bool
    created_at: times.WireTime
    updated_at: times.WireTime
    secret_hint: str


class WebhookResponse(resource.Response, frozen=True):
    """The account's webhook; null when there is none."""

    webhook: Webhook | None


class WebhookRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The webhook's settings."""

    url: Url
    events: Events | None = None
    enabled: Enabled | None = None


class SavedWebhook(resource.Response, frozen=True):
    """The webhook, with its secret only when this request created it."""

    webhook: Webhook
    secret: Secret | msgspec.UnsetType = msgspec.UNSET


class WebhookEndpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook endpoint. `secret_hint` is the end of the secret."""

    id: str
    is_first: Annotated[bool, msgspec.Meta(description="Whether `/v1/webhook` acts on this one.")]
    url: str
    description: str
    events: list[EventName]
    format: Annotated[
        str,
        msgspec.Meta(
            description="Whose events the requests contain: `postroad`, or the service through whose API the webhook "
            "was created. Only there its events can be changed."
        ),
    ]
    version: endpoint_settings.Version
    tags: list[str]
    sender_domains: list[str]
    mode: endpoint_settings.Mode
    standard_signature: bool
    enabled: bool
    failing_since: Annotated[
        times.WireTime | None,
        msgspec.Meta(description="Since when every attempt has failed; null while there is no failure."),
    ]
    disabled_reason: Annotated[
        str | None, msgspec.Meta(description="Why the service disabled the webhook; null otherwise.")
    ]
    created_at: times.WireTime
    updated_at: times.WireTime
    secret_hint: str


class WebhookEndpointResponse(resource.Response, frozen=True):
    """One webhook."""

    webhook: WebhookEndpoint


class WebhookEndpointsResponse(resource.Response, frozen=True):
    """All webhooks of the account, the first one first, then the oldest."""

    webhooks: list[WebhookEndpoint]


class CreatedWebhookEndpoint(resource.Response, frozen=True):
    """The new webhook and its secret."""

    webhook: WebhookEndpoint
    secret: Secret


class EndpointOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be set of a webhook besides its URL."""

    events: Events | None = None
    enabled: Enabled | None = None
    version: (
        Annotated[
            endpoint_settings.Version,
            msgspec.Meta(
                description="Version of the event data, see `/v1/event-schemas`. Absent: unchanged; 1 for a new one."
            ),
        ]
        | None
    ) = None
    tags: (
        Annotated[
            send_request.Tags,
            msgspec.Meta(description="Only events of messages with one of these tags; of all messages when empty."),
        ]
        | None
    ) = None
    sender_domains: (
        Annotated[
            tuple[resource.DomainName, ...],
            msgspec.Meta(
                max_length=endpoint_settings.MAX_SENDER_DOMAINS,
                description="Only events of messages from one of these domains; from all when empty.",
            ),
        ]
        | None
    ) = None
    mode: (
        Annotated[
            endpoint_settings.Mode,
            msgspec.Meta(description="Events of `live` messages only (the default), or of `test` messages only."),
        ]
        | None
    ) = None
    standard_signature: (
        Annotated[
            bool, msgspec.Meta(description="Whether requests are also signed as Standard Webhooks. Default: false.")
        ]
        | None
    ) = None
    description: (
        Annotated[
            str,
            msgspec.Meta(
                max_length=endpoint_settings.MAX_DESCRIPTION_CHARACTERS,
                description="A note for people.",
                extra_json_schema={"pattern": endpoint_settings.DESCRIPTION_PATTERN},
            ),
        ]
        | None
    ) = None


class WebhookEndpointRequest(EndpointOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A webhook to create. Only `url` is required."""

    url: Url


class WebhookEndpointUpdate(EndpointOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change of a webhook; what is absent or null stays as it is."""

    url: Url | None = None


class SecretRotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the old secret stays valid."""

    overlap_hours: OverlapHours | None = None


class RotatedSecret(resource.Response, frozen=True):
    """The new secret."""

    secret: Secret


class WebhookAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to the endpoint and its response, truncated at 2 KB."""

    at: times.WireTime
    status_code: int | None
    duration_ms: float
    response_body: str | None
    error: Annotated[
        str | None,
        msgspec.Meta(description="An error code, a colon and a detail, when no status code explains the failure."),
    ]


class WebhookDelivery(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery of an event, with every attempt."""

    id: str
    event_id: str
    event_type: DeliveryEventName
    message_id: str | None
    recipient_id: str | None
    replay_of: Annotated[str | None, msgspec.Meta(description="The delivery that this one replays.")]
    url: str
    status: delivery_log.Status
    attempt_count: int
    next_attempt_at: Annotated[
        times.WireTime | None,
        msgspec.Meta(
            description="Time of the next attempt; null when the delivery is final or held, and while an "
            "attempt is running."
        ),
    ]
    created_at: times.WireTime
    request_body: Annotated[str, msgspec.Meta(description="The request body, truncated at 2 KB.")]
    attempts: list[WebhookAttempt]


class WebhookDeliveryResponse(resource.Response, frozen=True):
    """One delivery."""

    delivery: WebhookDelivery


class WebhookDeliveriesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Filters of the delivery log."""

    message_id: Annotated[str, msgspec.Meta(min_length=1, description="Only deliveries for this message.")] | None = (
        None
    )
    status: Annotated[delivery_log.Status | None, msgspec.Meta(description="Only deliveries with this status.")] = None
    limit: resource.Limit | None = identifiers.DEFAULT_LIMIT
    before: LogPosition | None = None


class WebhookDeliveriesResponse(resource.Response, frozen=True):
    """Deliveries of the last 7 days, newest first."""

    deliveries: list[WebhookDelivery]
    next_before: Annotated[
        str | None,
        msgspec.Meta(
            description="Pass as `before` for older deliveries; null on the last page. With a `status` filter a page "
            "may be empty without being the last."
        ),
    ]


class FailedReplay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The period of the events to replay."""

    after: Annotated[resource.Timestamp, msgspec.Meta(description="Events at or after this time, RFC 3339.")]
    before: Annotated[resource.Timestamp, msgspec.Meta(description="Events before this time, RFC 3339.")]


class FailedReplayResponse(resource.Response, frozen=True):
    """How many events are replayed."""

    replayed: int
    has_more: Annotated[bool, msgspec.Meta(description="True when the period was not completed in this call.")]
    next_after: Annotated[
        times.WireTime | None,
        msgspec.Meta(description="Pass as `after` to continue; null when the period is complete."),
    ]


def webhook(row: mail_webhooks.Webhook) -> Webhook:
    """A stored webhook in its public form."""
    return resource.from_record(Webhook, row, events=row.events.split(), enabled=bool(row.enabled))


def webhook_endpoint(row: mail_webhooks.Webhook) -> WebhookEndpoint:
    """A stored webhook in the public form of `/v1/webhooks`."""
    return resource.from_record(
        WebhookEndpoint,
        row,
        is_first=bool(row.is_first),
        events=row.events.split(),
        format=row.format,
        tags=endpoint_settings.lines(row.tags),
        sender_domains=endpoint_settings.lines(row.sender_domains),
        standard_signature=bool(row.standard_signature),
        enabled=bool(row.enabled),
        failing_since=times.optional_to_wire(row.failing_since),
        disabled_reason=row.disabled_reason or None,
    )


def delivery(entry: delivery_log.Entry, *, shows_content: bool = True) -> WebhookDelivery:
    """A log entry in its public form. Without content it has no bodies: events have subjects, responses may have."""
    return resource.from_record(
        WebhookDelivery,
        entry.delivery,
        status=entry.status,
        next_attempt_at=times.optional_to_wire(entry.next_attempt_at),
        # The bytes are UTF-8; truncation may leave a partial character, which is dropped.
        request_body=entry.delivery.body[:SHOWN_BYTES].decode(errors="ignore") if shows_content else "",
        attempts=[
            resource.from_record(
                WebhookAttempt,
                attempt,
                at=times.to_wire(attempt.started_at),
                duration_ms=attempt.duration / 1_000,
                response_body=attempt.response_body if shows_content else None,
            )
            for attempt in entry.attempts
        ],
    )


_TYPES: Final = "|".join(kind.replace(".", "[.]") for kind in events.EventType)
RESOURCE: Final = resource.Resource("Webhook", {"type": f"^({_TYPES})$"})


class EventSchemasResponse(resource.Response, frozen=True):
    """Event schemas, by type and version."""

    schemas: list[events.EventSchema]


async def list_event_schemas(_ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the schemas of all webhook events.

    One for each type, or one for each version of a type where these differ.
    """
    return _response(request, tuple(events.EventType))


async def show_event_schema(_ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the schemas of a webhook event.

    There is one, or one for each version where these differ.
    """
    try:
        kind = events.EventType(request.path["type"])
    except ValueError:
        raise errors.NotFound("no such event type; GET /v1/event-schemas lists them all") from None
    return _response(request, (kind,))


def _response(request: routing.Request, kinds: tuple[events.EventType, ...]) -> routing.Response:
    found = [schema for kind in kinds for schema in events.schema_of_type(kind)]
    return routing.Response(200, EventSchemasResponse(found, request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/event-schemas", list_event_schemas, responses={200: EventSchemasResponse}),
    RESOURCE.route("GET /v1/event-schemas/{type}", show_event_schema, responses={200: EventSchemasResponse}),
)
