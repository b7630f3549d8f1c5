"""Resend's send request, and its translation into ours.

`tags`, which are pairs there, become `metadata`: both are names with a value that are kept, returned and never sent.
What Postroad does not have is refused by name. All else is passed on as it is, and our own rules decide.
"""

import base64
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from postroad import errors
from postroad.api import extension_api
from postroad.model.mail import send_request
from postroad.model.units import times
from postroad.web import request_reader

_OCTET_VALUES: Final = 256
# Resend documents `in 1 min` and such. More days than `send_at` allows have two digits.
_FROM_NOW: Final = re.compile(r"in (?:an?|(\d{1,5})) (sec|second|min|minute|hour|day)s?", re.ASCII | re.IGNORECASE)
_UNITS: Final = {
    "sec": times.SECOND,
    "second": times.SECOND,
    "min": 60 * times.SECOND,
    "minute": 60 * times.SECOND,
    "hour": times.HOUR,
    "day": times.DAY,
}
_SCHEDULED_AT: Final = "write an ISO 8601 time with a time zone, such as 2026-01-31T12:00:00Z, or 'in 10 min'"


class Tag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name with a value."""

    name: str
    value: str


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The template to send, by its alias, which is also its id."""

    id: str
    variables: Mapping[str, Any] | None = None


class Attachment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file: its content in base64 or as a list of octets, or the URL that it is fetched from."""

    filename: str | None = None
    content: str | list[int] | None = None
    path: str | None = None
    content_type: str | None = None
    content_id: str | None = None
    inline_content_id: str | None = None


class Email(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A message to send."""

    sender: Any = msgspec.field(name="from", default=None)
    to: Any = None
    subject: Any = None
    bcc: Any = None
    cc: Any = None
    reply_to: str | list[str] | None = None
    html: Any = None
    text: Any = None
    headers: Any = None
    scheduled_at: str | None = None
    tags: list[Tag] | None = None
    attachments: Annotated[list[Attachment], msgspec.Meta(max_length=1_000)] | None = None
    template: Template | None = None
    topic_id: Any = None
    region: Any = None


# Our names of the members that are passed on as they are.
_SAME: Final = {"sender": "from", "to": "to", "cc": "cc", "bcc": "bcc", "subject": "subject", "html": "html"} | {
    "reply_to": "reply_to",
    "text": "text",
    "headers": "headers",
}


def read(document: object, *, root: str = "body") -> Email:
    """The request in a JSON document."""
    email: Email = request_reader.convert(document, Email, root=root)
    return email


def translate(email: Email, *, now: int) -> send_request.SendRequest:
    """Our request for the same message. Raises InvalidRequest."""
    for name in ("topic_id", "region"):
        if getattr(email, name) is not None:
            raise unsupported(name)
    document = {wire: getattr(email, name) for name, wire in _SAME.items()}
    if isinstance(email.headers, dict):
        document["headers"] = extension_api.custom_headers(email.headers)
    document["metadata"] = _metadata(email.tags or [])
    if email.scheduled_at is not None:
        document["send_at"] = times.to_wire(parse_scheduled_at(email.scheduled_at, now=now))
    if email.template is not None:
        document |= {"template": email.template.id, "variables": email.template.variables}
    document["attachments"] = [
        _attachment(attachment, place) for place, attachment in enumerate(email.attachments or [])
    ]
    given = {name: value for name, value in document.items() if value not in (None, [], {})}
    request: send_request.SendRequest = request_reader.convert(given, send_request.SendRequest, root="body")
    return request


def unsupported(what: str) -> errors.InvalidRequest:
    """The error about a member that Resend has and Postroad does not."""
    return errors.InvalidRequest(extension_api.unsupported(what, "Resend"))


def encode(content: bytes) -> str:
    """A file as the content of an attachment."""
    return base64.b64encode(content).decode("ascii")


def parse_scheduled_at(text: str, *, now: int) -> int:
    """The time of `scheduled_at` in microseconds."""
    match = _FROM_NOW.fullmatch(text.strip())
    if match is not None:
        return now + int(match[1] or 1) * _UNITS[match[2].lower()]
    try:
        return times.parse(text)
    except ValueError:
        raise errors.InvalidRequest(f"scheduled_at: {_SCHEDULED_AT}") from None


def _metadata(tags: list[Tag]) -> dict[str, str]:
    made = {tag.name: tag.value for tag in tags}
    if len(made) < len(tags):
        raise errors.InvalidRequest("tags: two have the same name; names must be unique")
    return made


def _attachment(given: Attachment, place: int) -> dict[str, str | None]:
    content = given.content
    if isinstance(content, list):
        if not all(0 <= octet < _OCTET_VALUES for octet in content):
            raise errors.InvalidRequest(f"attachments[{place}].content: octets are numbers from 0 to 255")
        content = encode(bytes(content))
    made = {
        "filename": given.filename,
        "content": content,
        "content_type": given.content_type,
        "content_id": given.content_id or given.inline_content_id,
    }
    return {name: value for name, value in made.items() if value is not None}
