"""JSON schemas (draft 2020-12) of the webhook events, made from the Structs that encode them.

They allow other members: more may be added to any event.
"""

from typing import Any, Final

import msgspec

from postroad.model import events, identifiers

Schema = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
# What the data of every event about a recipient has. A test event has neither, so the Struct cannot say it.
_RECIPIENT: Final = ("email_id", "recipient_id", "to", "from")


class EventSchema(msgspec.Struct, frozen=True):
    """The schema of an event type in these versions."""

    type: events.EventType
    versions: tuple[int, ...]
    schema: Schema


def of_type(kind: events.EventType) -> list[EventSchema]:
    """The schemas of a type: one, or one for each version where these differ."""
    versions: dict[type[msgspec.Struct], list[int]] = {}
    for version in events.VERSIONS:
        versions.setdefault(events.data_type(kind, version), []).append(version)
    return [EventSchema(kind, tuple(numbers), _schema(kind, struct)) for struct, numbers in versions.items()]


def _schema(kind: events.EventType, struct: type[msgspec.Struct]) -> Schema:
    _, parts = msgspec.json.schema_components([events.Event[struct], struct])  # type: ignore[valid-type]
    event, data = parts.pop(f"Event_{struct.__name__}_"), parts.pop(struct.__name__)
    for member in data["properties"].values():
        member.pop("default", None)  # absent when empty
    if events.is_email(kind):
        data["required"] = [*_RECIPIENT, *data["required"]]
    event["properties"] |= {
        "id": {"type": "string", "pattern": identifiers.pattern(identifiers.EVENT)},
        "type": {"const": kind.value},
        "data": {name: part for name, part in data.items() if name != "title"},
    }
    return {"$schema": DIALECT, **event, "title": kind.value}
