"""What Postroad sends: receipts, messages and events, read from JSON.

Members that are not known are ignored, and one that was left out is empty. One of a wrong type is a ValueError: then it
was not Postroad that sent it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, Final, TypeVar

from postroad_client.records import record

T = TypeVar("T")

# RFC 3339 section 5.6; `datetime.fromisoformat` of older Pythons reads only a part of it.
TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
# What does not change any more.
FINAL_STATUSES: Final = frozenset({"delivered", "bounced", "failed", "canceled", "expired"})


@record
class AttachmentInfo:
    """An attachment as it was accepted; `size` is in bytes."""

    filename: str | None
    content_type: str | None
    size: int | None
    content_id: str | None


@record
class Receipt:
    """An email was accepted. That does not mean that it was delivered: `get` tells what became of it."""

    id: str
    status: str | None
    source: str | None
    request_id: str | None
    sender: str | None
    to: tuple[str, ...]
    cc: tuple[str, ...]
    bcc: tuple[str, ...]
    reply_to: str | tuple[str, ...] | None
    subject: str | None
    billing_status: str | None
    recipient_count: int | None
    credits_reserved: int | None
    headers: Mapping[str, str]
    tags: tuple[str, ...]
    attachments: tuple[AttachmentInfo, ...]
    send_at: datetime | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@record
class Recipient:
    """One recipient of a message, with the last words of the destination."""

    id: str | None
    email: str | None
    status: str | None
    billing_status: str | None
    attempt_count: int | None
    last_smtp_code: int | None
    last_smtp_response: str | None
    delivered_at: datetime | None
    bounced_at: datetime | None
    # With `include_queue`: when it is tried next, and why not earlier, with the names of the API.
    queue: Mapping[str, Any] | None = None


@record
class Message:
    """What became of an email. Its status is `queued` until every recipient is final."""

    id: str
    status: str
    source: str | None
    sender: str | None
    subject: str | None
    billing_status: str | None
    recipient_count: int | None
    credits_reserved: int | None
    created_at: datetime | None
    recipients: tuple[Recipient, ...]
    request_id: str | None
    send_at: datetime | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_final(self) -> bool:
        """Whether every recipient has its result: delivered, bounced, failed, canceled or expired."""
        return bool(self.recipients) and all(recipient.status in FINAL_STATUSES for recipient in self.recipients)


@record
class EventData:
    """The recipient of an event. `sender` is the one of the envelope, to which bounces go."""

    email_id: str | None
    recipient_id: str | None
    to: str | None
    sender: str | None
    subject: str | None
    smtp_code: int | None
    smtp_response: str | None
    test: bool


@record
class Event:
    """A webhook. It may come twice, with the same `id`; `created_at` is when the result became final."""

    id: str
    type: str
    created_at: datetime | None
    data: EventData


def receipt(members: dict[str, Any]) -> Receipt:
    """The response to a send."""
    return Receipt(
        id=_required(members, "id"),
        status=_text(members, "status"),
        source=_text(members, "source"),
        request_id=_text(members, "request_id"),
        sender=_text(members, "from"),
        to=_texts(members, "to"),
        cc=_texts(members, "cc"),
        bcc=_texts(members, "bcc"),
        reply_to=_text_or_texts(members, "reply_to"),
        subject=_text(members, "subject"),
        billing_status=_text(members, "billing_status"),
        recipient_count=_number(members, "recipient_count"),
        credits_reserved=_number(members, "credits_reserved"),
        headers=_texts_by_name(members, "headers"),
        tags=_texts(members, "tags"),
        attachments=_parts(members, "attachments", _attachment),
        send_at=_time(members, "send_at"),
        expires_at=_time(members, "expires_at"),
        metadata=_texts_by_name(members, "metadata"),
    )


def message(members: dict[str, Any]) -> Message:
    """The response to a get."""
    return Message(
        id=_required(members, "id"),
        status=_required(members, "status"),
        source=_text(members, "source"),
        sender=_text(members, "from"),
        subject=_text(members, "subject"),
        billing_status=_text(members, "billing_status"),
        recipient_count=_number(members, "recipient_count"),
        credits_reserved=_number(members, "credits_reserved"),
        created_at=_time(members, "created_at"),
        recipients=_parts(members, "recipients", _recipient),
        request_id=_text(members, "request_id"),
        send_at=_time(members, "send_at"),
        expires_at=_time(members, "expires_at"),
        metadata=_texts_by_name(members, "metadata"),
    )


def event(members: dict[str, Any]) -> Event:
    """The body of a webhook."""
    data: dict[str, Any] = _member(members, "data", dict) or {}
    return Event(
        id=_required(members, "id"),
        type=_required(members, "type"),
        created_at=_time(members, "created_at"),
        data=EventData(
            email_id=_text(data, "email_id"),
            recipient_id=_text(data, "recipient_id"),
            to=_text(data, "to"),
            sender=_text(data, "from"),
            subject=_text(data, "subject"),
            smtp_code=_number(data, "smtp_code"),
            smtp_response=_text(data, "smtp_response"),
            test=_member(data, "test", bool) or False,
        ),
    )


def _attachment(members: dict[str, Any]) -> AttachmentInfo:
    return AttachmentInfo(
        filename=_text(members, "filename"),
        content_type=_text(members, "content_type"),
        size=_number(members, "size"),
        content_id=_text(members, "content_id"),
    )


def _recipient(members: dict[str, Any]) -> Recipient:
    return Recipient(
        id=_text(members, "id"),
        email=_text(members, "email"),
        status=_text(members, "status"),
        billing_status=_text(members, "billing_status"),
        attempt_count=_number(members, "attempt_count"),
        last_smtp_code=_number(members, "last_smtp_code"),
        last_smtp_response=_text(members, "last_smtp_response"),
        delivered_at=_time(members, "delivered_at"),
        bounced_at=_time(members, "bounced_at"),
        queue=_member(members, "queue", dict),
    )


def _member(members: dict[str, Any], name: str, kind: type[T]) -> T | None:
    """The member, if it is there; null is the same as left out."""
    value = members.get(name)
    # By its exact type: to Python, true is a number too.
    if value is not None and type(value) is not kind:
        raise ValueError(f"{name!r} is not what it should be")
    return value


def _text(members: dict[str, Any], name: str) -> str | None:
    return _member(members, name, str)


def _number(members: dict[str, Any], name: str) -> int | None:
    return _member(members, name, int)


def _required(members: dict[str, Any], name: str) -> str:
    value = _text(members, name)
    if not value:
        raise ValueError(f"{name!r} is missing")
    return value


def _texts(members: dict[str, Any], name: str) -> tuple[str, ...]:
    values = _member(members, name, list) or []
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name!r} is not a list of strings")
    return tuple(values)


def _text_or_texts(members: dict[str, Any], name: str) -> str | tuple[str, ...] | None:
    return (_texts if isinstance(members.get(name), list) else _text)(members, name)


def _texts_by_name(members: dict[str, Any], name: str) -> Mapping[str, str]:
    texts = _member(members, name, dict) or {}
    if not all(isinstance(value, str) for value in texts.values()):
        raise ValueError(f"{name!r} is not an object of strings")
    return texts


def _parts(members: dict[str, Any], name: str, build: Callable[[dict[str, Any]], T]) -> tuple[T, ...]:
    values = _member(members, name, list) or []
    if not all(isinstance(value, dict) for value in values):
        raise ValueError(f"{name!r} is not a list of objects")
    return tuple(build(value) for value in values)


def _time(members: dict[str, Any], name: str) -> datetime | None:
    text = _text(members, name)
    if text is None:
        return None
    found = TIME.fullmatch(text)
    if found is None:
        raise ValueError(f"{name!r} is not a time with a zone")
    date, time, fraction, zone = found.groups(default="")
    # A datetime counts microseconds; what is finer is cut off.
    return datetime.fromisoformat(f"{date}T{time}.{fraction[:6]:0<6}{'+00:00' if zone in 'Zz' else zone}")
