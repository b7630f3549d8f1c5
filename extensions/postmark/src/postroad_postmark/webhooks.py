"""`/webhooks`: endpoints that get events in Postmark's format. Others are not shown here.

An endpoint gets the events of all message streams. Credentials and header fields are secrets, and are never shown.
"""

from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.api import extension_api
from postroad.model.people import callers
from postroad.services.webhooks import endpoint_settings, endpoints, signed_requests
from postroad.storage.mail import webhooks
from postroad.web import routing
from postroad_postmark import error_shape, event_format, numbers, schemas

# Postroad does not track opens and clicks.
_UNMEASURED: Final = ("Open", "Click")


class Trigger(schemas.Body, frozen=True):
    """Whether an event is sent. The content of messages never is."""

    enabled: bool | None = None
    post_first_open_only: bool | None = None
    include_content: bool | None = None


class Triggers(schemas.Body, frozen=True):
    """Which events are sent."""

    open: Trigger | None = None
    click: Trigger | None = None
    delivery: Trigger | None = None
    bounce: Trigger | None = None
    spam_complaint: Trigger | None = None
    subscription_change: Trigger | None = None
    # Not among the triggers of Postmark, where it is a URL of the server.
    inbound: Trigger | None = None


class HttpAuth(schemas.Body, frozen=True):
    """Credentials of HTTP Basic authentication."""

    username: str
    password: str


class Webhook(schemas.Body, frozen=True):
    """A webhook to create, or what to change of one."""

    url: str | None = None
    message_stream: str | None = None
    http_auth: HttpAuth | None = None
    http_headers: tuple[schemas.Header, ...] | None = None
    triggers: Triggers | None = None


class WebhooksQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The filter of the list. Packages send the page that they ask other lists for; this one is short."""

    message_stream: str | None = msgspec.field(name="MessageStream", default=None)
    count: schemas.Count | None = None
    offset: schemas.Offset | None = None


async def index(ctx: context.Context, request: routing.Request) -> routing.Response:
    """List webhooks, oldest first."""
    query: WebhooksQuery = request.query
    _check_stream(query.message_stream)
    return extension_api.respond({"Webhooks": [_shown(row) for row in await _all(ctx, request.caller.account_id)]})


async def show(ctx: context.Context, request: routing.Request) -> routing.Response:
    """One webhook."""
    return extension_api.respond(_shown(await _find(ctx, request)))


async def create(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Create a webhook."""
    body: Webhook = request.body
    if not body.url:
        raise errors.InvalidRequest("Url: is required")
    changes = _changes(body, before=())
    saved = await endpoints.create(ctx, request.caller.account_id, changes, of_format=event_format.FORMAT.name)
    return extension_api.respond(_shown(saved.webhook))


async def edit(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Change a webhook; what is not given stays."""
    row = await _find(ctx, request)
    changes = _changes(request.body, before=tuple(row.format_events.split()))
    await endpoints.change(ctx, request.caller.account_id, row.id, changes)
    return extension_api.respond(_shown(await _find(ctx, request)))


async def remove(ctx: context.Context, request: routing.Request) -> routing.Response:
    """Remove a webhook."""
    row = await _find(ctx, request)
    await endpoints.remove(ctx, request.caller.account_id, row.id)
    return extension_api.respond(error_shape.Error(0, f"Webhook {numbers.of(row.id)} removed."))


def _changes(body: Webhook, *, before: tuple[str, ...]) -> endpoint_settings.Changes:
    _check_stream(body.message_stream)
    fields = None
    if body.http_auth is not None or body.http_headers is not None:
        fields = [(header.name, header.value) for header in body.http_headers or ()]
        if body.http_auth is not None:
            fields.append(signed_requests.basic_authentication(body.http_auth.username, body.http_auth.password))
    return endpoint_settings.Changes(
        url=body.url or None,
        format_events=None if body.triggers is None else _events(body.triggers, before=before),
        request_headers=fields,
    )


def _events(triggers: Triggers, *, before: tuple[str, ...]) -> list[str]:
    """The names of the events that are wanted."""
    given = {field.encode_name: getattr(triggers, field.name) for field in msgspec.structs.fields(Triggers)}
    wanted = {name: trigger.enabled for name, trigger in given.items() if trigger and trigger.enabled is not None}
    for name in _UNMEASURED:
        if wanted.get(name):
            raise errors.InvalidRequest(f"Triggers.{name}: Postroad does not track mail, so there is no such event")
    return [name for name in event_format.SOURCES if wanted.get(name, name in before)]


def _check_stream(stream: str | None) -> None:
    if stream not in (None, "", event_format.DEFAULT_STREAM):
        raise errors.InvalidRequest(
            "MessageStream: an endpoint gets the events of all message streams; leave it out, or give 'outbound'"
        )


async def _all(ctx: context.Context, account_id: str) -> list[webhooks.Webhook]:
    found = await endpoints.of_account(ctx, account_id)
    return [row for row in found if row.format == event_format.FORMAT.name]


async def _find(ctx: context.Context, request: routing.Request) -> webhooks.Webhook:
    numbered = numbers.by_number(await _all(ctx, request.caller.account_id), lambda row: row.id)
    found = numbered.get(request.path["id"])
    if found is None:
        raise endpoints.not_found()
    return found


def _shown(row: webhooks.Webhook) -> dict[str, Any]:
    wanted = row.format_events.split()
    triggers: dict[str, dict[str, bool]] = {
        name: {"Enabled": name in wanted} for name in (*_UNMEASURED, *event_format.SOURCES)
    }
    triggers["Open"]["PostFirstOpenOnly"] = False
    triggers["Bounce"]["IncludeContent"] = triggers["SpamComplaint"]["IncludeContent"] = False
    return {
        "ID": numbers.of(row.id),
        "Url": row.url,
        "MessageStream": event_format.DEFAULT_STREAM,
        "HttpAuth": None,
        "HttpHeaders": [],
        "Triggers": triggers,
    }


_SCOPE: Final = callers.Scope.WEBHOOKS
ROUTES: Final = (
    extension_api.route("GET /webhooks", index, query=WebhooksQuery, scope=_SCOPE),
    extension_api.route("POST /webhooks", create, body=Webhook, scope=_SCOPE),
    extension_api.route("GET /webhooks/{id}", show, scope=_SCOPE),
    extension_api.route("PUT /webhooks/{id}", edit, body=Webhook, scope=_SCOPE),
    extension_api.route("DELETE /webhooks/{id}", remove, scope=_SCOPE),
)
