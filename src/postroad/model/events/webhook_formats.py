"""The formats of webhook events: ours, and those of services whose endpoints an application may have already.

In the format of another service an event is translated from version 2 of ours (`model/events/events.py`). Each of its
events comes from some of ours, and each of ours becomes one of its events at most. What nobody here measures, such as
opened mail, has no event.
"""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Final

from postroad.model.events import events, postmark_events, resend_events


class Format(StrEnum):
    """Whose events an endpoint gets."""

    POSTROAD = "postroad"
    RESEND = "resend"
    POSTMARK = "postmark"


# Which of our events become which event of the service.
SOURCES: Final[Mapping[str, Mapping[str, tuple[events.EventType, ...]]]] = {
    Format.RESEND: resend_events.SOURCES,
    Format.POSTMARK: postmark_events.SOURCES,
}
# From our event to the name of the service's, and its bytes.
_TRANSLATORS: Final[Mapping[str, Callable[[events.EmailEvent], tuple[str, bytes]]]] = {
    Format.RESEND: resend_events.translate,
    Format.POSTMARK: postmark_events.translate,
}
_PINGS: Final[Mapping[str, Callable[[int], bytes]]] = {
    Format.RESEND: resend_events.ping,
    Format.POSTMARK: postmark_events.ping,
}


def sources(name: str, wanted: Collection[str]) -> list[str]:
    """Our event types, in documented order, that these events of a service come from."""
    found = {kind for one in wanted for kind in SOURCES[name][one]}
    return [kind for kind in events.SUBSCRIBABLE if kind in found]


def translate(name: str, event: events.EmailEvent, *, wanted: Collection[str]) -> bytes | None:
    """The bytes of an event in the format of a service; None when the endpoint does not want what it becomes there."""
    translated, body = _TRANSLATORS[name](event)
    return body if translated in wanted else None


def ping(name: str, event_id: str, *, created_at: int) -> bytes:
    """The bytes of a test event in a format."""
    return _PINGS[name](created_at) if name in _PINGS else events.ping(event_id, created_at=created_at)
