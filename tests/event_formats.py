"""A format of webhook events that an extension could have, for tests of the service without one."""

import dataclasses
from typing import Final

import msgspec

from postroad import context
from postroad.model.events import event_formats, events

SOURCES: Final = {"sent": (events.EventType.ACCEPTED,), "arrived": (events.EventType.DELIVERED,)}


def translate(event: events.EmailEvent) -> tuple[str, bytes]:
    name = next(name for name, kinds in SOURCES.items() if event.kind in kinds)
    return name, msgspec.json.encode({"what": name, "to": event.data.to})


FORMAT: Final = event_formats.EventFormat(
    name="other", sources=SOURCES, translate=translate, ping=lambda at: msgspec.json.encode({"what": "ping", "at": at})
)


def with_format(ctx: context.Context) -> context.Context:
    """The same context in a process that has the extension."""
    return dataclasses.replace(ctx, event_formats={FORMAT.name: FORMAT})
