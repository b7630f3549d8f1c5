"""`/v1/event-schemas`: the JSON schemas of the webhook events."""

from typing import Annotated, Any, Final

import msgspec

from postroad import errors
from postroad.api.v1 import resource, schemas
from postroad.model import event_schemas, events
from postroad.services import context
from postroad.web import routing

_TYPES: Final = "|".join(kind.replace(".", "[.]") for kind in events.EventType)
RESOURCE: Final = resource.Resource("Webhook", {"type": f"^({_TYPES})$"})


class EventSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON schema (draft 2020-12) of an event type."""

    type: str
    versions: Annotated[list[int], msgspec.Meta(description="The webhook versions in which the event has this form.")]
    schema: Annotated[dict[str, Any], msgspec.Meta(description="The schema of the request body.")]


class EventSchemasResponse(schemas.Response, frozen=True):
    """Event schemas, by type and version."""

    schemas: list[EventSchema]


async def index(_ctx: context.Context, request: routing.Request) -> routing.Response:
    """List the schemas of all webhook events.

    One for each type, or one for each version of a type where these differ.
    """
    return _response(request, tuple(events.EventType))


async def show(_ctx: context.Context, request: routing.Request) -> routing.Response:
    """Get the schemas of a webhook event.

    There is one, or one for each version where these differ.
    """
    try:
        kind = events.EventType(request.path["type"])
    except ValueError:
        raise errors.NotFound("no such event type; GET /v1/event-schemas lists them all") from None
    return _response(request, (kind,))


def _response(request: routing.Request, kinds: tuple[events.EventType, ...]) -> routing.Response:
    found = [
        EventSchema(type=each.type, versions=list(each.versions), schema=each.schema)
        for kind in kinds
        for each in event_schemas.of_type(kind)
    ]
    return routing.Response(200, EventSchemasResponse(found, request_id=request.id))


ROUTES: Final = (
    RESOURCE.route("GET /v1/event-schemas", index, responses={200: EventSchemasResponse}),
    RESOURCE.route("GET /v1/event-schemas/{type}", show, responses={200: EventSchemasResponse}),
)
