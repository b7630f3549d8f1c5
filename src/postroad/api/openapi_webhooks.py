"""The `webhooks` of the OpenAPI document: what an endpoint receives, one entry for each event type.

The schemas are those of `GET /v1/event-schemas`, as components that generated clients make types of.
"""

from typing import Any, Final

from postroad.model import event_schemas, events

Schema = dict[str, Any]

SIGNATURE: Final = {
    "name": "Service-Signature",
    "in": "header",
    "required": True,
    "description": "`t=<seconds since 1970>,v1=<64 hex digits>`, see docs/webhooks.md. Verify it before you trust the "
    "body.",
    "schema": {"type": "string"},
}


def schemas() -> dict[str, Schema]:
    """The components, by name."""
    return {_name(each): _component(each) for kind in events.EventType for each in event_schemas.of_type(kind)}


def webhooks() -> dict[str, Schema]:
    """The operations, by event type."""
    return {kind.value: {"post": _webhook(kind)} for kind in events.EventType}


def _name(schema: event_schemas.EventSchema) -> str:
    name = "".join(word.capitalize() for word in schema.type.replace("_", ".").split("."))
    of_version = "" if schema.versions == events.VERSIONS else "V" + "And".join(map(str, schema.versions))
    return f"{name}Event{of_version}"


def _component(schema: event_schemas.EventSchema) -> Schema:
    members = {word: part for word, part in schema.schema.items() if word != "$schema"}
    return {**members, "title": _name(schema)}


def _webhook(kind: events.EventType) -> Schema:
    references = [{"$ref": f"#/components/schemas/{_name(each)}"} for each in event_schemas.of_type(kind)]
    name = _name(event_schemas.of_type(kind)[-1]).partition("Event")[0]
    return {
        "operationId": f"on{name}",
        "tags": ["Webhooks"],
        "summary": f"The event `{kind}`",
        "description": "Sent to every endpoint that has subscribed to the type. Endpoints deduplicate by `id`.",
        "security": [],
        "parameters": [SIGNATURE],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": references[0] if len(references) == 1 else {"anyOf": references}}
            },
        },
        "responses": {"2XX": {"description": "The event is received; anything else is a failed attempt."}},
    }
