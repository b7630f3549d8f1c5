"""The settings of a webhook endpoint: their rules, and how they are stored.

A filter lets the events of some messages pass: those with one of its tags, those from one of its sender domains. A list
that is empty lets all pass.
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from postroad import errors
from postroad.mail.accept import validation
from postroad.model.events import event_formats, events
from postroad.model.units import labels
from postroad.protocol.mime import address
from postroad.services.webhooks import signed_requests
from postroad.storage.mail import webhooks

DEFAULT_EVENTS: Final = " ".join(events.DEFAULT)
MAX_SENDER_DOMAINS: Final = 20
MAX_DESCRIPTION_CHARACTERS: Final = 200
DESCRIPTION_PATTERN: Final = f"^[^{address.UNSEEN}]*$"

Mode = Literal["live", "test"]
Version = Literal[1, 2]
HeaderFields = signed_requests.HeaderFields


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What to change of an endpoint; None stays as it is. No events means those of `DEFAULT_EVENTS`."""

    url: str | None = None
    events: Sequence[str] | None = None
    enabled: bool | None = None
    version: Version | None = None
    tags: Sequence[str] | None = None
    sender_domains: Sequence[str] | None = None
    mode: Mode | None = None
    standard_signature: bool | None = None
    description: str | None = None
    # Of endpoints in the format of another service only: its events, and header fields for every request.
    format_events: Sequence[str] | None = None
    request_headers: HeaderFields | None = None


def check(
    changes: Changes, *, of_format: str = event_formats.OWN, formats: event_formats.Formats | None = None
) -> Changes:
    """The changes with lists normalized. Raises InvalidRequest. The URL is checked elsewhere."""
    given: dict[str, object] = {}
    if of_format != event_formats.OWN:
        _refuse_own_options(changes, of_format)
        if changes.format_events is not None:
            form = find_format(formats or {}, of_format)
            given["format_events"] = _format_events(changes.format_events, form)
            given["events"] = form.kinds(changes.format_events)
        if changes.request_headers is not None:
            signed_requests.check_headers(changes.request_headers)
    if changes.events is not None:
        given["events"] = _events(changes.events)
    if changes.tags is not None:
        given["tags"] = validation.check_tags("tags", tuple(changes.tags))
    if changes.sender_domains is not None:
        given["sender_domains"] = _sender_domains(changes.sender_domains)
    if changes.description is not None:
        labels.check_label("description", changes.description or "-", limit=MAX_DESCRIPTION_CHARACTERS)
    return msgspec.structs.replace(changes, **given)


def find_format(formats: event_formats.Formats, name: str) -> event_formats.EventFormat:
    """A format of an extension. Raises Conflict where it is not installed."""
    if name not in formats:
        raise errors.Conflict(
            f"this webhook has the format of an extension ({name}) that is not installed here; its events wait"
        )
    return formats[name]


def apply(webhook: webhooks.Webhook, changes: Changes, *, now: int) -> webhooks.Webhook:
    """An endpoint with changes that were checked. Enabling it, and another URL, let it begin anew."""
    given: dict[str, object] = {
        name: value
        for name in ("url", "version", "mode", "description")
        if (value := getattr(changes, name)) is not None
    }
    for name in ("enabled", "standard_signature"):
        if (flag := getattr(changes, name)) is not None:
            given[name] = int(flag)
    for name, separator in (("events", " "), ("tags", "\n"), ("sender_domains", "\n"), ("format_events", " ")):
        if (listed := getattr(changes, name)) is not None:
            given[name] = separator.join(listed)
    changed = msgspec.structs.replace(webhook, updated_at=now, **given)
    if changed.url != webhook.url or changed.enabled > webhook.enabled:
        changed = msgspec.structs.replace(changed, failing_since=None)
    return msgspec.structs.replace(changed, disabled_reason="") if changed.enabled else changed


def _refuse_own_options(changes: Changes, of_format: str) -> None:
    """Another service's format has its own events and its own signature."""
    for name in ("events", "version", "standard_signature"):
        if getattr(changes, name) is not None:
            raise errors.InvalidRequest(
                f"{name}: this webhook has the format of another service ({of_format}), which does not have this "
                f"setting; use /compat/{of_format} to change its events"
            )


def _format_events(wanted: Sequence[str], of_format: event_formats.EventFormat) -> list[str]:
    """The events of another service as stored: each once, in documented order."""
    known = of_format.sources
    for place, name in enumerate(wanted):
        if name not in known:
            raise errors.InvalidRequest(f"events[{place}]: Postroad sends none of these; use {', '.join(known)}")
    if not wanted:
        raise errors.InvalidRequest(f"events: name at least one of {', '.join(known)}")
    return [name for name in known if name in wanted]


def lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _events(wanted: Sequence[str]) -> list[str]:
    """The event names as stored: each once, in documented order."""
    for place, name in enumerate(wanted):
        if name not in events.SUBSCRIBABLE:
            raise errors.InvalidRequest(f"events[{place}]: must be one of {', '.join(events.SUBSCRIBABLE)}")
    return [kind for kind in events.SUBSCRIBABLE if kind in (wanted or events.DEFAULT)]


def _sender_domains(given: Sequence[str]) -> list[str]:
    if len(given) > MAX_SENDER_DOMAINS:
        raise errors.InvalidRequest(f"sender_domains: {len(given)} domains; at most {MAX_SENDER_DOMAINS} are allowed")
    found = (labels.parse_domain(f"sender_domains[{place}]", name) for place, name in enumerate(given))
    return list(dict.fromkeys(found))
