"""`/v1/webhooks`: all webhook endpoints of the account. What each has in common with the first is in `webhook.py`."""

from typing import Final

import msgspec

from postroad import errors
from postroad.api.v1 import resource, webhook
from postroad.api.v1 import webhook_schemas as schemas
from postroad.services import context
from postroad.services.webhooks import endpoint_settings, endpoints
from postroad.web import routing

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
RESOURCE: Final = resource.Resource("Webhooks", webhook.RESOURCE.path_patterns, SUMMARIES)
PATH: Final = f"/v1/webhooks/{{{webhook.WEBHOOK_ID}}}"


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List webhooks.

    The first one first, then the oldest.
    """
    found = await endpoints.of_account(ctx, request.caller.account_id)
    shown = [schemas.webhook_endpoint(one) for one in found]
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
    found = await endpoints.get(ctx, request.caller.account_id, request.path[webhook.WEBHOOK_ID])
    return _response(request, schemas.webhook_endpoint(found))


async def change(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change a webhook.

    What is left out stays as it is. Enabling a webhook that the service has disabled lets it begin anew.
    """
    webhook_id = request.path[webhook.WEBHOOK_ID]
    changed = await endpoints.change(ctx, request.caller.account_id, webhook_id, _changes(request.body))
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
    *webhook.routes_of_endpoint(PATH, RESOURCE),
)
