"""The formats of webhook events: ours, and those that extensions have, for endpoints that applications have already.

In another format an event is translated from version 2 of ours (`model/events/events.py`). Each of its events comes
from some of ours, and each of ours becomes one of its events at most. What nobody here measures, such as opened mail,
has no event.

An endpoint whose format is not installed gets its events later: until then they are kept as they were before the
translation.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad.model.events import events
from postroad.model.units import times

OWN: Final = "postroad"
Event = events.EmailEvent | events.ReceivedEvent


class EventFormat(msgspec.Struct, frozen=True, kw_only=True):
    """A format: its name, its events, and how one is written and signed."""

    name: str
    # Which of our events become which event of the format.
    sources: Mapping[str, Sequence[events.EventType]]
    # From our event to the name of the format's, and its bytes.
    translate: Callable[[events.EmailEvent], tuple[str, bytes]]
    # The same for `email.received`, if that is among the sources.
    translate_received: Callable[[events.ReceivedEvent], tuple[str, bytes]] | None = None
    # The bytes of a test event.
    ping: Callable[[int], bytes]
    # The header fields of a request besides our own signature: secrets (newest first), body, event id, Unix time.
    sign: Callable[[Sequence[str], bytes, str, int], Sequence[tuple[str, str]]] | None = None

    def kinds(self, wanted: Collection[str]) -> list[str]:
        """Our event types, in documented order, that these events of the format come from."""
        found = {kind for name in wanted for kind in self.sources[name]}
        return [kind for kind in events.SUBSCRIBABLE if kind in found]

    def body(self, event: Event, *, wanted: Collection[str]) -> bytes | None:
        """The bytes of an event; None when the endpoint does not want what it becomes."""
        if isinstance(event, events.EmailEvent):
            name, body = self.translate(event)
        elif self.translate_received is not None:
            name, body = self.translate_received(event)
        else:
            return None
        return body if name in wanted else None


Formats = Mapping[str, EventFormat]  # by name


class _Untranslated(msgspec.Struct, frozen=True, kw_only=True, tag_field="format", tag="untranslated"):
    type: events.EventType
    created_at: times.WireTime
    at: int
    data: Any
    is_scheduled: bool
    is_suppressed: bool
    message_id: str | None
    files: tuple[bytes | None, ...] = ()


_BEGIN: Final = b'{"format":"untranslated",'


def untranslated(event: Event) -> bytes:
    """The bytes of an event whose format is not installed."""
    if isinstance(event, events.ReceivedEvent):
        return msgspec.json.encode(
            _Untranslated(
                type=events.EventType.RECEIVED,
                created_at=times.to_wire(event.at),
                at=event.at,
                data=event.data,
                is_scheduled=False,
                is_suppressed=False,
                message_id=None,
                files=event.files,
            )
        )
    return msgspec.json.encode(
        _Untranslated(
            type=event.kind,
            created_at=times.to_wire(event.at),
            at=event.at,
            data=event.data,
            is_scheduled=event.is_scheduled,
            is_suppressed=event.is_suppressed,
            message_id=event.message_id,
        )
    )


def read_untranslated(body: bytes) -> Event | None:
    """The event of such bytes; None for bytes of a format."""
    if not body.startswith(_BEGIN):
        return None
    kept = msgspec.json.decode(body, type=_Untranslated)
    if kept.type is events.EventType.RECEIVED:
        return events.ReceivedEvent(at=kept.at, data=msgspec.convert(kept.data, events.ReceivedData), files=kept.files)
    data: type[Any] = events.data_type(kept.type, events.V2)
    return events.EmailEvent(
        kind=kept.type,
        at=kept.at,
        data=msgspec.convert(kept.data, data),
        is_scheduled=kept.is_scheduled,
        is_suppressed=kept.is_suppressed,
        message_id=kept.message_id,
    )
