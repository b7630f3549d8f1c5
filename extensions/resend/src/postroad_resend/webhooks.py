"""Resend's webhooks: create, list, get, update, remove, and a new signing secret.

Webhooks that are created here send events in Resend's format, and only those are visible here. A signing secret is
shown once; afterwards only its end is.
"""

from typing import Any, Final, Literal

import msgspec

from postroad import context
from postroad.api import extension_api
from postroad.model.people import callers
from postroad.model.units import identifiers, times
from postroad.services.webhooks import delivery_log, endpoint_settings, endpoints
from postroad.storage.mail import webhooks
from postroad.web import routing
from postroad_resend import emails, event_format

_ENABLED: Final = {"enabled": True, "disabled": False}
_STATUSES: Final = {"succeeded": "success", "failed": "failed", "pending": "pending"}


class NewWebhook(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A webhook to create."""

    endpoint: str
    events: list[str]


class WebhookUpdate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to change of a webhook. The package for Python repeats the id of the path."""

    webhook_id: str | None = None
    endpoint: str | None = None
    events: list[str] | None = None
    status: Literal["enabled", "disabled"] | None = None


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a webhook; its secret is shown only now."""
    body: NewWebhook = request.body
    changes = endpoint_settings.Changes(url=body.endpoint, format_events=body.events)
    saved = await endpoints.create(ctx, request.caller.account_id, changes, of_format=event_format.FORMAT.name)
    return extension_api.respond(
        {"object": "webhook", "id": saved.webhook.id, "signing_secret": saved.secret}, status=201
    )


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the webhooks that were created here, oldest first."""
    query: emails.Page = request.query
    after = identifiers.after(query.after, identifiers.WEBHOOK)
    found = await endpoints.of_account(ctx, request.caller.account_id)
    wanted = [row for row in found if row.format == event_format.FORMAT.name and row.id > after]
    rows, following = identifiers.page(wanted, limit=query.rows)
    return extension_api.respond(
        {"object": "list", "has_more": following is not None, "data": [_shown(row) for row in rows]}
    )


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get a webhook."""
    row = await _find(ctx, request)
    return extension_api.respond({"object": "webhook", **_shown(row), "signing_secret": row.secret_hint})


async def update(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change the URL, the events, or whether it is enabled."""
    body: WebhookUpdate = request.body
    row = await _find(ctx, request)
    changes = endpoint_settings.Changes(
        url=body.endpoint,
        format_events=body.events,
        enabled=None if body.status is None else _ENABLED[body.status],
    )
    await endpoints.change(ctx, request.caller.account_id, row.id, changes)
    return extension_api.respond({"object": "webhook", "id": row.id})


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a webhook."""
    row = await _find(ctx, request)
    await endpoints.remove(ctx, request.caller.account_id, row.id)
    return extension_api.respond({"object": "webhook", "id": row.id, "deleted": True})


async def rotate(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create another signing secret; the old one stops at once."""
    row = await _find(ctx, request)
    secret = await endpoints.rotate(ctx, request.caller.account_id, row.id)
    return extension_api.respond({"object": "webhook", "id": row.id, "signing_secret": secret})


async def events(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List what was sent to a webhook, newest first."""
    query: emails.Page = request.query
    row = await _find(ctx, request)
    part = await delivery_log.page(ctx, request.caller.account_id, row.id, before=query.after, limit=query.rows)
    listed = [_event(entry) for entry in part.rows]
    return extension_api.respond({"object": "list", "has_more": part.next_cursor is not None, "data": listed})


async def event(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get one of them, with its payload."""
    entry = await _entry(ctx, request)
    payload = msgspec.Raw(entry.delivery.body)
    following = times.optional_to_wire(entry.next_attempt_at)
    return extension_api.respond(
        {"object": "webhook_event", **_event(entry), "next_attempt_at": following, "payload": payload}
    )


async def attempts(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the requests of one of them: at most seven, so there is one page."""
    entry = await _entry(ctx, request)
    listed = [
        {
            "id": f"{entry.delivery.id}_{attempt.number}",
            "http_status_code": attempt.status_code or 0,
            "response": attempt.response_body or attempt.error or "",
            "sent_at": times.to_wire(attempt.started_at),
        }
        for attempt in entry.attempts
    ]
    return extension_api.respond({"object": "list", "has_more": False, "data": listed})


async def replay(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send one of them again."""
    row = await _find(ctx, request)
    entry = await delivery_log.replay(ctx, request.caller.account_id, request.path["event"], webhook_id=row.id)
    return extension_api.respond({"object": "webhook_event", "id": entry.delivery.id})


async def _find(ctx: context.Context, request: routing.Request) -> webhooks.Webhook:
    row = await endpoints.get(ctx, request.caller.account_id, request.path["id"])
    if row.format != event_format.FORMAT.name:
        raise endpoints.not_found()
    return row


async def _entry(ctx: context.Context, request: routing.Request) -> delivery_log.Entry:
    row = await _find(ctx, request)
    return await delivery_log.find(ctx, request.caller.account_id, request.path["event"], webhook_id=row.id)


def _shown(row: webhooks.Webhook) -> dict[str, Any]:
    return {
        "id": row.id,
        "created_at": times.to_wire(row.created_at),
        "status": "enabled" if row.enabled else "disabled",
        "endpoint": row.url,
        "events": row.format_events.split(),
    }


def _event(entry: delivery_log.Entry) -> dict[str, Any]:
    delivery = entry.delivery
    return {
        "id": delivery.id,
        "type": msgspec.json.decode(delivery.body)["type"],
        "created_at": times.to_wire(delivery.created_at),
        "status": _STATUSES[entry.status],
    }


def _route(endpoint: str, handler: routing.Handler[context.Context], **options: Any) -> extension_api.Route:
    return extension_api.route(endpoint, handler, scope=callers.Scope.WEBHOOKS, **options)


ROUTES: Final = (
    _route("POST /webhooks", create, body=NewWebhook),
    _route("GET /webhooks", index, query=emails.Page),
    _route("GET /webhooks/{id}", show),
    _route("PATCH /webhooks/{id}", update, body=WebhookUpdate),
    _route("DELETE /webhooks/{id}", remove),
    _route("POST /webhooks/{id}/signing-secret/rotate", rotate),
    _route("GET /webhooks/{id}/events", events, query=emails.Page),
    _route("GET /webhooks/{id}/events/{event}", event),
    _route("GET /webhooks/{id}/events/{event}/attempts", attempts, query=emails.Page),
    _route("POST /webhooks/{id}/events/{event}/replay", replay),
)
