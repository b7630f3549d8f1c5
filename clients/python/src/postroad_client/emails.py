"""What is sent: an email and its attachments, with the names of the interface except for `from`, a word of Python."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from postroad_client.records import record

if TYPE_CHECKING:
    from typing_extensions import Self

# Variables of these types are sent as strings: an amount as JSON's number could lose digits on its way.
AS_TEXT: Final = (decimal.Decimal, uuid.UUID)


@record
class Attachment:
    """A file that goes with an email. Without a type, Postroad derives it from the file name."""

    filename: str
    content: bytes = field(repr=False)
    content_type: str | None = None
    content_id: str | None = None

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        filename: str | None = None,
        content_type: str | None = None,
        content_id: str | None = None,
    ) -> Self:
        """Read the file now; it is named as on disk unless `filename` says otherwise."""
        file = Path(path)
        return cls(
            filename=file.name if filename is None else filename,
            content=file.read_bytes(),
            content_type=content_type,
            content_id=content_id,
        )


@record
class Email:
    """A message to send. What is None is not sent; the server checks the rest, and explains."""

    sender: str
    to: str | Sequence[str]
    cc: str | Sequence[str] | None = None
    bcc: str | Sequence[str] | None = None
    reply_to: str | Sequence[str] | None = None
    subject: str | None = None
    text: str | None = None
    html: str | None = None
    template: str | None = None
    variables: Mapping[str, Any] | None = None
    headers: Mapping[str, str] | None = None
    tags: str | Sequence[str] | None = None
    attachments: Sequence[Attachment] | None = None
    send_at: dt.datetime | str | None = None
    expires_in: int | None = None
    metadata: Mapping[str, str] | None = None
    unsubscribe: Mapping[str, str] | None = None


def encode(email: Email) -> bytes:
    """The body of the request. What JSON cannot say is a TypeError or a ValueError."""
    return encode_members(checked(email))


def encode_members(members: Mapping[str, Any]) -> bytes:
    """Members of any request as JSON."""
    return json.dumps(members, default=_plain, allow_nan=False).encode()


def checked(email: Email) -> dict[str, Any]:
    """The members of an email."""
    if not isinstance(email, Email):
        raise TypeError(f"an email is made with Email(sender=…, to=…, …); this is of the type {type(email).__name__}")
    return _members(email)


def _members(part: Email | Attachment) -> dict[str, Any]:
    given = {member.name: getattr(part, member.name) for member in fields(cast("Any", part))}
    return {"from" if name == "sender" else name: value for name, value in given.items() if value is not None}


def _plain(value: object) -> object:
    """What the json module does not know by itself."""
    if isinstance(value, Attachment):
        return _members(value) | {"content": base64.b64encode(value.content).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    if isinstance(value, dt.date):  # a datetime is one, too
        return value.isoformat()
    if isinstance(value, AS_TEXT):
        return str(value)
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")
