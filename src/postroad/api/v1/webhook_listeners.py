"""`/v1/webhook-listeners`: the events of the account over a connection of the caller, for `postroad webhook listen`."""

from typing import Annotated, Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource, webhook_schemas
from postroad.model.units import identifiers
from postroad.services.webhooks import endpoint_settings, listeners
from postroad.storage.mail import webhooks
from postroad.web import routing

RESOURCE: Final = resource.Resource("Webhooks", {"id": identifiers.pattern(identifiers.WEBHOOK)})


class ListenerRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A listener to create."""

    events: webhook_schemas.Events | None = None
    version: (
        Annotated[
            endpoint_settings.Version,
            msgspec.Meta(description="Version of the event data, see `/v1/event-schemas`. Absent: 1."),
        ]
        | None
    ) = None
    mode: (
        Annotated[
            endpoint_settings.Mode,
            msgspec.Meta(
                description="Events of `live` messages (the default), or of `test` keys. A test key has `test`."
            ),
        ]
        | None
    ) = None


class Receive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What has been received, and how long to wait for more."""

    acknowledge: (
        Annotated[
            list[str],
            msgspec.Meta(
                description="Ids of processed deliveries, which are not returned again. Unknown ids are ignored.",
                max_length=listeners.MAX_EVENTS,
            ),
        ]
        | None
    ) = None
    wait_seconds: (
        Annotated[
            int,
            msgspec.Meta(
                description="How long to wait if there is no event; by default not at all.",
                ge=0,
                le=listeners.MAX_WAIT_SECONDS,
            ),
        ]
        | None
    ) = None


class ReceivedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event, and the delivery to acknowledge."""

    id: Annotated[str, msgspec.Meta(description="The delivery.")]
    event_id: str
    event_type: str
    body: Annotated[str, msgspec.Meta(description="The event, as a webhook request has it.")]


class ReceivedEvents(resource.Response, frozen=True):
    """Events that are not acknowledged, oldest first."""

    events: list[ReceivedEvent]


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a webhook listener.

    A listener is a webhook without a URL: nothing is sent to it, and its events are fetched. It gets them like any
    other webhook of the account, and counts as one. It is removed when it has not been asked for events for 10 minutes,
    or with `DELETE /v1/webhooks/{webhook}`. The secret is for whoever forwards the events and has to sign them.
    """
    body: ListenerRequest = request.body
    mode = webhooks.TEST if request.caller.is_test else body.mode
    changes = endpoint_settings.Changes(events=body.events, version=body.version, mode=mode)
    saved = await listeners.create(ctx, request.caller.account_id, changes)
    shown = webhook_schemas.webhook_endpoint(saved.webhook)
    return routing.Response(
        201, webhook_schemas.CreatedWebhookEndpoint(shown, saved.secret or "", request_id=request.id)
    )


async def receive(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Receive the events of a webhook listener.

    Events are returned until they are acknowledged, so that none is lost with a connection. `rate_limited` when too
    many requests of the account are waiting.
    """
    body: Receive = request.body
    found = await listeners.receive(
        ctx,
        request.caller.account_id,
        request.path["id"],
        acknowledged=body.acknowledge or (),
        wait_seconds=body.wait_seconds or 0,
    )
    events = [
        ReceivedEvent(
            id=delivery.id, event_id=delivery.event_id, event_type=delivery.event_type, body=delivery.body.decode()
        )
        for delivery in found
    ]
    return routing.Response(200, ReceivedEvents(events, request_id=request.id))


ROUTES: Final = (
    RESOURCE.route(
        "POST /v1/webhook-listeners",
        create,
        body=ListenerRequest,
        body_required=False,
        body_rules={"examples": [{}, {"events": ["email.delivered", "email.bounced"]}]},
        responses={201: webhook_schemas.CreatedWebhookEndpoint},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route(
        "POST /v1/webhook-listeners/{id}/receive",
        receive,
        body=Receive,
        body_required=False,
        body_rules={"examples": [{"acknowledge": ["whd_" + "0" * 28], "wait_seconds": 5}, {}]},
        responses={200: ReceivedEvents},
        errors=(errors.NotFound, errors.RateLimited),
        is_poll=True,
    ),
)
