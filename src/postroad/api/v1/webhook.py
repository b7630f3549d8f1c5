"""`/v1/webhook`: the webhook endpoint of the account, and its delivery log."""

from typing import Final

import msgspec

from postroad import errors
from postroad.api.v1 import schemas as v1_schemas
from postroad.api.v1 import webhook_schemas as schemas
from postroad.model import caller, cursors, identifiers, times
from postroad.services import context
from postroad.services.webhooks import delivery_log, endpoints, replays
from postroad.services.webhooks import ping as webhooks_ping
from postroad.web import routing

PATH_PATTERNS: Final = {"id": identifiers.pattern(identifiers.WEBHOOK_DELIVERY)}


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """The account's webhook."""
    found = await endpoints.find(ctx, request.caller.account_id)
    return routing.Response(200, schemas.WebhookResponse(schemas.webhook(found) if found else None, request.id))


async def save(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create the webhook and return its secret once, or replace the webhook."""
    body: schemas.WebhookRequest = request.body
    saved = await endpoints.save(
        ctx, request.caller.account_id, url=body.url, wanted=body.events or (), enabled=body.enabled is not False
    )
    secret = msgspec.UNSET if saved.secret is None else saved.secret
    return routing.Response(
        200, schemas.SavedWebhook(webhook=schemas.webhook(saved.webhook), secret=secret, request_id=request.id)
    )


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove the webhook."""
    await endpoints.remove(ctx, request.caller.account_id)
    return routing.Response(204)


async def rotate(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a new secret and return it once."""
    body: schemas.SecretRotation = request.body
    secret = await endpoints.rotate(ctx, request.caller.account_id, overlap_hours=body.overlap_hours)
    return routing.Response(200, schemas.RotatedSecret(secret, request.id))


async def ping(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send a test event and return the result."""
    sent = await webhooks_ping.ping(ctx, request.caller.account_id)
    return routing.Response(200, schemas.WebhookDeliveryResponse(schemas.delivery(sent), request.id))


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """A page of the delivery log."""
    query: schemas.WebhookDeliveriesQuery = request.query
    found = await delivery_log.part(
        ctx,
        request.caller.account_id,
        message_id=query.message_id,
        status=query.status,
        before=query.before,
        limit=query.limit or cursors.DEFAULT_LIMIT,
    )
    shown = [schemas.delivery(entry) for entry in found.entries]
    return routing.Response(200, schemas.WebhookDeliveriesResponse(shown, found.next_before, request.id))


async def show_delivery(ctx: context.Context, request: routing.Request) -> routing.Response:
    """One delivery."""
    found = await delivery_log.find(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(200, schemas.WebhookDeliveryResponse(schemas.delivery(found), request.id))


async def replay(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send an event again."""
    again = await delivery_log.replay(ctx, request.caller.account_id, request.path["id"])
    return routing.Response(202, schemas.WebhookDeliveryResponse(schemas.delivery(again), request.id))


async def replay_failed(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send failed events again."""
    body: schemas.FailedReplay = request.body
    done = await replays.replay_failed(
        ctx,
        request.caller.account_id,
        after=v1_schemas.parse_timestamp("after", body.after),
        before=v1_schemas.parse_timestamp("before", body.before),
    )
    next_after = times.optional_to_wire(done.next_after)
    return routing.Response(202, schemas.FailedReplayResponse(done.count, done.has_more, next_after, request.id))


ROUTES: tuple[routing.Route[context.Context], ...] = (
    routing.Route(
        method="GET",
        path="/v1/webhook",
        handler=show,
        summary="Get the webhook",
        tag="Webhook",
        permission=caller.Permission.VIEW,
        responses={200: schemas.WebhookResponse},
    ),
    routing.Route(
        method="PUT",
        path="/v1/webhook",
        handler=save,
        summary="Create or replace the webhook",
        description="The secret is returned only in the response that creates the webhook.",
        tag="Webhook",
        permission=caller.Permission.CHANGE,
        body=schemas.WebhookRequest,
        body_rules={
            "examples": [
                {"url": "https://hooks.example.com/postroad"},
                {"url": "https://hooks.example.com/postroad", "events": ["email.bounced"], "enabled": True},
            ]
        },
        responses={200: schemas.SavedWebhook},
    ),
    routing.Route(
        method="DELETE",
        path="/v1/webhook",
        handler=remove,
        summary="Remove the webhook",
        description="Pending deliveries and the delivery log are removed with it.",
        tag="Webhook",
        permission=caller.Permission.CHANGE,
        responses={204: None},
        errors=(errors.NotFound,),
    ),
    routing.Route(
        method="POST",
        path="/v1/webhook/rotate-secret",
        handler=rotate,
        summary="Rotate the webhook secret",
        description="The new secret is returned only in this response. The body is optional.",
        tag="Webhook",
        permission=caller.Permission.CHANGE,
        body=schemas.SecretRotation,
        body_required=False,
        body_rules={"examples": [{"overlap_hours": 24}]},
        responses={200: schemas.RotatedSecret},
        errors=(errors.NotFound, errors.Conflict),
    ),
    routing.Route(
        method="POST",
        path="/v1/webhook/ping",
        handler=ping,
        summary="Send a test event to the webhook",
        description="One attempt, even when the webhook is disabled; at most one ping in "
        f"{webhooks_ping.MIN_PING_INTERVAL_SECONDS} seconds.",
        tag="Webhook",
        permission=caller.Permission.CHANGE,
        responses={200: schemas.WebhookDeliveryResponse},
        errors=(errors.NotFound, errors.RateLimited),
    ),
    routing.Route(
        method="GET",
        path="/v1/webhook/deliveries",
        handler=index,
        summary="List webhook deliveries",
        tag="Webhook",
        permission=caller.Permission.VIEW,
        query=schemas.WebhookDeliveriesQuery,
        responses={200: schemas.WebhookDeliveriesResponse},
    ),
    routing.Route(
        method="POST",
        path="/v1/webhook/deliveries/replay",
        handler=replay_failed,
        summary="Replay failed deliveries of a period",
        description="The period selects events by their time. Each event is sent once more as a new "
        "delivery, with the same "
        "bytes and the full retry schedule, unless a later delivery of it succeeded or is pending. Test events "
        f"are not replayed. At most {replays.MAX_REPLAYED} per call, and one call at a time.",
        tag="Webhook",
        permission=caller.Permission.CHANGE,
        body=schemas.FailedReplay,
        body_rules={"examples": [{"after": "2026-01-31T12:00:00Z", "before": "2026-01-31T18:00:00Z"}]},
        responses={202: schemas.FailedReplayResponse},
        errors=(errors.NotFound, errors.Conflict, errors.RateLimited),
    ),
    routing.Route(
        method="GET",
        path="/v1/webhook/deliveries/{id}",
        handler=show_delivery,
        summary="Get a webhook delivery",
        tag="Webhook",
        permission=caller.Permission.VIEW,
        responses={200: schemas.WebhookDeliveryResponse},
        path_patterns=PATH_PATTERNS,
    ),
    routing.Route(
        method="POST",
        path="/v1/webhook/deliveries/{id}/replay",
        handler=replay,
        summary="Replay a webhook delivery",
        description="Creates a new delivery of the same event with the same bytes and the full retry schedule.",
        tag="Webhook",
        permission=caller.Permission.CHANGE,
        responses={202: schemas.WebhookDeliveryResponse},
        errors=(errors.Conflict,),
        path_patterns=PATH_PATTERNS,
    ),
)
