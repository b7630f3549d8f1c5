"""`/v1/webhook`: the first webhook endpoint of the account, and its delivery log.

Handlers without an endpoint's id in the path act on the first one; `webhooks.py` has the same with an id.
"""

from typing import Final

import msgspec

from postroad import errors
from postroad.api.v1 import resource
from postroad.api.v1 import schemas as v1_schemas
from postroad.api.v1 import webhook_schemas as schemas
from postroad.model import cursors, identifiers, times
from postroad.services import context
from postroad.services.webhooks import delivery_log, endpoints, replays
from postroad.services.webhooks import ping as webhooks_ping
from postroad.web import routing

WEBHOOK_ID: Final = "webhook"
RESOURCE: Final = resource.Resource(
    "Webhook",
    {
        "id": identifiers.pattern(identifiers.WEBHOOK_DELIVERY),
        WEBHOOK_ID: identifiers.pattern(identifiers.WEBHOOK),
    },
)


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the webhook.

    The `webhook` is null when there is none. The secret is never returned.
    """
    found = await endpoints.find(ctx, request.caller.account_id)
    return routing.Response(
        200, schemas.WebhookResponse(schemas.webhook(found) if found else None, request_id=request.id)
    )


async def save(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create or change the webhook.

    What is left out stays as it is. The secret is returned only in the response that creates the webhook.
    """
    body: schemas.WebhookRequest = request.body
    saved = await endpoints.save(ctx, request.caller.account_id, url=body.url, wanted=body.events, enabled=body.enabled)
    secret = msgspec.UNSET if saved.secret is None else saved.secret
    return routing.Response(
        200, schemas.SavedWebhook(webhook=schemas.webhook(saved.webhook), secret=secret, request_id=request.id)
    )


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove the webhook.

    Pending deliveries and the delivery log are removed with it.
    """
    await endpoints.remove(ctx, request.caller.account_id, request.path.get(WEBHOOK_ID))
    return routing.Response(204)


async def rotate(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Rotate the webhook secret.

    The new secret is returned only in this response. The body is optional.
    """
    body: schemas.SecretRotation = request.body
    webhook_id = request.path.get(WEBHOOK_ID)
    secret = await endpoints.rotate(ctx, request.caller.account_id, webhook_id, overlap_hours=body.overlap_hours)
    return routing.Response(200, schemas.RotatedSecret(secret, request_id=request.id))


async def ping(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send a test event to the webhook."""
    sent = await webhooks_ping.ping(ctx, request.caller.account_id, request.path.get(WEBHOOK_ID))
    return routing.Response(200, schemas.WebhookDeliveryResponse(schemas.delivery(sent), request_id=request.id))


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List webhook deliveries.

    Deliveries of the last 7 days, newest first.
    """
    query: schemas.WebhookDeliveriesQuery = request.query
    found = await delivery_log.part(
        ctx,
        request.caller.account_id,
        request.path.get(WEBHOOK_ID),
        message_id=query.message_id,
        status=query.status,
        before=query.before,
        limit=query.limit or cursors.DEFAULT_LIMIT,
    )
    shown = [schemas.delivery(entry, shows_content=request.caller.sees_content) for entry in found.entries]
    return routing.Response(200, schemas.WebhookDeliveriesResponse(shown, found.next_before, request_id=request.id))


async def show_delivery(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a webhook delivery.

    With every attempt, and the response that it got.
    """
    webhook_id = request.path.get(WEBHOOK_ID)
    found = await delivery_log.find(ctx, request.caller.account_id, request.path["id"], webhook_id=webhook_id)
    shown = schemas.delivery(found, shows_content=request.caller.sees_content)
    return routing.Response(200, schemas.WebhookDeliveryResponse(shown, request_id=request.id))


async def replay(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Replay a webhook delivery.

    Creates a new delivery of the same event with the same bytes and the full retry schedule.
    """
    webhook_id = request.path.get(WEBHOOK_ID)
    again = await delivery_log.replay(ctx, request.caller.account_id, request.path["id"], webhook_id=webhook_id)
    return routing.Response(202, schemas.WebhookDeliveryResponse(schemas.delivery(again), request_id=request.id))


async def replay_failed(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Replay failed deliveries of a period."""
    body: schemas.FailedReplay = request.body
    done = await replays.replay_failed(
        ctx,
        request.caller.account_id,
        request.path.get(WEBHOOK_ID),
        after=v1_schemas.parse_timestamp("after", body.after),
        before=v1_schemas.parse_timestamp("before", body.before),
    )
    next_after = times.optional_to_wire(done.next_after)
    return routing.Response(
        202, schemas.FailedReplayResponse(done.count, done.has_more, next_after, request_id=request.id)
    )


def routes_of_endpoint(path: str, of: resource.Resource) -> tuple[routing.Route[context.Context], ...]:
    """The routes of one endpoint at a path, which has its id unless it is the first."""
    return (
        of.route(f"DELETE {path}", remove, responses={204: None}, errors=(errors.NotFound,)),
        of.route(
            f"POST {path}/rotate-secret",
            rotate,
            body=schemas.SecretRotation,
            body_required=False,
            body_rules={"examples": [{"overlap_hours": 24}]},
            responses={200: schemas.RotatedSecret},
            errors=(errors.NotFound, errors.Conflict),
        ),
        of.route(
            f"POST {path}/ping",
            ping,
            description="One attempt, even when the webhook is disabled; at most one ping in "
            f"{webhooks_ping.MIN_PING_INTERVAL_SECONDS} seconds.",
            responses={200: schemas.WebhookDeliveryResponse},
            errors=(errors.NotFound, errors.Conflict, errors.RateLimited),
        ),
        of.route(
            f"GET {path}/deliveries",
            index,
            query=schemas.WebhookDeliveriesQuery,
            responses={200: schemas.WebhookDeliveriesResponse},
        ),
        of.route(
            f"POST {path}/deliveries/replay",
            replay_failed,
            description="The period selects events by their time. Each event is sent once more as a new delivery, with "
            "the same bytes and the full retry schedule, unless a later delivery of it succeeded or is pending. Test "
            f"events are not replayed. At most {replays.MAX_REPLAYED} per call, and one call at a time.",
            body=schemas.FailedReplay,
            body_rules={"examples": [{"after": "2026-01-31T12:00:00Z", "before": "2026-01-31T18:00:00Z"}]},
            responses={202: schemas.FailedReplayResponse},
            errors=(errors.NotFound, errors.Conflict, errors.RateLimited),
        ),
        of.route(f"GET {path}/deliveries/{{id}}", show_delivery, responses={200: schemas.WebhookDeliveryResponse}),
        of.route(
            f"POST {path}/deliveries/{{id}}/replay",
            replay,
            responses={202: schemas.WebhookDeliveryResponse},
            errors=(errors.Conflict, errors.RateLimited),
        ),
    )


ROUTES: Final = (
    RESOURCE.route("GET /v1/webhook", show, responses={200: schemas.WebhookResponse}),
    RESOURCE.route(
        "PUT /v1/webhook",
        save,
        body=schemas.WebhookRequest,
        body_rules={
            "examples": [
                {"url": "https://hooks.example.com/postroad"},
                {"url": "https://hooks.example.com/postroad", "events": ["email.bounced"], "enabled": True},
            ]
        },
        responses={200: schemas.SavedWebhook},
    ),
    *routes_of_endpoint("/v1/webhook", RESOURCE),
)
