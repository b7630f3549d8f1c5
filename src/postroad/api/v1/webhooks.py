"""`/v1/webhooks` and `/v1/webhook`, the first of them: webhook endpoints and their delivery log."""

from typing import Final

import msgspec

from postroad import context, errors
from postroad.api.v1 import resource
from postroad.api.v1 import webhook_schemas as schemas
from postroad.model.units import identifiers, times
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints
from postroad.web import routing

# `/v1/webhook`: the first webhook endpoint of the account, and its delivery log.
#
# Handlers without an endpoint's id in the path act on the first one; `webhooks.py` has the same with an id.

WEBHOOK_ID: Final = "webhook"
FIRST_RESOURCE: Final = resource.Resource(
    "Webhook",
    {
        "id": identifiers.pattern(identifiers.WEBHOOK_DELIVERY),
        WEBHOOK_ID: identifiers.pattern(identifiers.WEBHOOK),
    },
)


async def show_first(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the webhook.

    The `webhook` is null when there is none. The secret is never returned.
    """
    found = await endpoints.find(ctx, request.caller.account_id)
    return routing.Response(
        200, schemas.WebhookResponse(schemas.webhook(found) if found else None, request_id=request.id)
    )


async def save_first(ctx: context.Context, request: routing.Request) -> routing.Response:
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
    sent = await delivery_log.ping(ctx, request.caller.account_id, request.path.get(WEBHOOK_ID))
    return routing.Response(200, schemas.WebhookDeliveryResponse(schemas.delivery(sent), request_id=request.id))


async def list_deliveries(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List webhook deliveries.

    Deliveries of the last 7 days, newest first.
    """
    query: schemas.WebhookDeliveriesQuery = request.query
    found = await delivery_log.page(
        ctx,
        request.caller.account_id,
        request.path.get(WEBHOOK_ID),
        message_id=query.message_id,
        status=query.status,
        before=query.before,
        limit=query.limit or identifiers.DEFAULT_LIMIT,
    )
    shown = [schemas.delivery(entry, shows_content=request.caller.sees_content) for entry in found.rows]
    return routing.Response(200, schemas.WebhookDeliveriesResponse(shown, found.next_cursor, request_id=request.id))


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
    done = await delivery_log.replay_failed(
        ctx,
        request.caller.account_id,
        request.path.get(WEBHOOK_ID),
        after=resource.parse_timestamp("after", body.after),
        before=resource.parse_timestamp("before", body.before),
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
            f"{delivery_log.MIN_PING_INTERVAL_SECONDS} seconds.",
            responses={200: schemas.WebhookDeliveryResponse},
            errors=(errors.NotFound, errors.Conflict, errors.RateLimited),
        ),
        of.route(
            f"GET {path}/deliveries",
            list_deliveries,
            query=schemas.WebhookDeliveriesQuery,
            responses={200: schemas.WebhookDeliveriesResponse},
        ),
        of.route(
            f"POST {path}/deliveries/replay",
            replay_failed,
            description="The period selects events by their time. Each event is sent once more as a new delivery, with "
            "the same bytes and the full retry schedule, unless a later delivery of it succeeded or is pending. Test "
            f"events are not replayed. At most {delivery_log.MAX_REPLAYED} per call, and one call at a time.",
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


FIRST_ROUTES: Final = (
    FIRST_RESOURCE.route("GET /v1/webhook", show_first, responses={200: schemas.WebhookResponse}),
    FIRST_RESOURCE.route(
        "PUT /v1/webhook",
        save_first,
        body=schemas.WebhookRequest,
        body_rules={
            "examples": [
                {"url": "https://hooks.example.com/postroad"},
                {"url": "https://hooks.example.com/postroad", "events": ["email.bounced"], "enabled": True},
            ]
        },
        responses={200: schemas.SavedWebhook},
    ),
    *routes_of_endpoint("/v1/webhook", FIRST_RESOURCE),
)


# Of the handlers that act on any endpoint.
SUMMARIES: Final = {
    "Remove the webhook": "Remove a webhook",
    "Rotate the webhook secret": "Rotate the secret of a webhook",
    "Send a test event to the webhook": "Send a test event to one webhook",
    "List webhook deliveries": "List the deliveries of a webhook",
    "Get a webhook delivery": "Get a delivery of a webhook",
    "Replay a webhook delivery": "Replay a delivery of a webhook",
    "Replay failed deliveries of a period": "Replay failed deliveries of a webhook",
}
RESOURCE: Final = resource.Resource("Webhooks", FIRST_RESOURCE.path_patterns, SUMMARIES)
PATH: Final = f"/v1/webhooks/{{{WEBHOOK_ID}}}"


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List webhooks.

    The first one first, then the oldest.
    """
    found = await endpoints.of_account(ctx, request.caller.account_id)
    shown = [schemas.webhook_endpoint(webhook) for webhook in found]
    return routing.Response(200, schemas.WebhookEndpointsResponse(shown, request_id=request.id))


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a webhook.

    The secret is returned only in this response.
    """
    saved = await endpoints.create(ctx, request.caller.account_id, _changes(request.body))
    shown, secret = schemas.webhook_endpoint(saved.webhook), saved.secret or ""
    return routing.Response(201, schemas.CreatedWebhookEndpoint(shown, secret, request_id=request.id))


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a webhook.

    The secret is never returned.
    """
    found = await endpoints.get(ctx, request.caller.account_id, request.path[WEBHOOK_ID])
    return _response(request, schemas.webhook_endpoint(found))


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change a webhook.

    What is left out stays as it is. Enabling a webhook that the service has disabled lets it begin anew.
    """
    changed = await endpoints.change(ctx, request.caller.account_id, request.path[WEBHOOK_ID], _changes(request.body))
    return _response(request, schemas.webhook_endpoint(changed))


def _changes(body: schemas.WebhookEndpointRequest | schemas.WebhookEndpointUpdate) -> endpoint_settings.Changes:
    return endpoint_settings.Changes(**msgspec.structs.asdict(body))


def _response(request: routing.Request, shown: schemas.WebhookEndpoint) -> routing.Response:
    return routing.Response(200, schemas.WebhookEndpointResponse(shown, request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/webhooks", index, responses={200: schemas.WebhookEndpointsResponse}),
    RESOURCE.route(
        "POST /v1/webhooks",
        create,
        body=schemas.WebhookEndpointRequest,
        body_rules={
            "examples": [
                {"url": "https://hooks.example.com/postroad"},
                {
                    "url": "https://billing.example.com/hooks",
                    "events": ["email.bounced", "email.failed"],
                    "tags": ["invoice"],
                    "sender_domains": ["billing.example.com"],
                    "description": "Invoices that did not arrive",
                    "standard_signature": True,
                },
            ]
        },
        responses={201: schemas.CreatedWebhookEndpoint},
        errors=(errors.Conflict,),
    ),
    RESOURCE.route(f"GET {PATH}", show, responses={200: schemas.WebhookEndpointResponse}),
    RESOURCE.route(
        f"PATCH {PATH}",
        change,
        body=schemas.WebhookEndpointUpdate,
        body_rules={"examples": [{"enabled": True}, {"tags": [], "description": "All messages"}]},
        responses={200: schemas.WebhookEndpointResponse},
        errors=(errors.Conflict,),
    ),
    *routes_of_endpoint(PATH, RESOURCE),
)
