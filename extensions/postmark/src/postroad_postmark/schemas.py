"""What Postmark's packages send. Names are those of its API; unknown members are refused, as everywhere."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from postroad.model.mail import send_request

# Postmark's own limit; a batch of ours has fewer, so a large one becomes several.
MAX_BATCH = 5 * send_request.MAX_EMAILS
# Postmark's limits of a page.
Count = Annotated[int, msgspec.Meta(ge=1, le=500)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=9_999)]


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="pascal", kw_only=True):
    """The rules of all bodies: `null` is the same as leaving a member out."""


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No filter: those of Postmark that Postroad does not have are refused and not ignored."""


class Header(Body, frozen=True):
    """A custom header."""

    name: str
    value: str


class Attachment(Body, frozen=True):
    """A file; `ContentID` is `cid:` and the id. `ContentLength`, which Postmark writes itself, is ignored."""

    name: str
    content: str
    content_type: str | None = None
    content_id: str | None = msgspec.field(name="ContentID", default=None)
    content_length: int | None = None


class Message(Body, frozen=True):
    """What all messages have. Mail is not tracked, and styles are not moved: both options are read and ignored."""

    sender: str = msgspec.field(name="From")
    to: str | None = None
    cc: str | None = None
    bcc: str | None = None
    reply_to: str | None = None
    tag: str | None = None
    headers: tuple[Header, ...] | None = None
    metadata: Mapping[str, str] | None = None
    attachments: tuple[Attachment, ...] | None = None
    message_stream: str | None = None
    track_opens: bool | None = None
    track_links: str | None = None


class Email(Message, frozen=True):
    """The body of `POST /email`."""

    subject: str | None = None
    text_body: str | None = None
    html_body: str | None = None


class TemplateEmail(Message, frozen=True):
    """The body of `POST /email/withTemplate`."""

    template_id: int | str | None = None
    template_alias: str | None = None
    template_model: Mapping[str, Any] | None = None
    subject: str | None = None
    text_body: str | None = None
    html_body: str | None = None
    inline_css: bool | None = None


class TemplateBatch(Body, frozen=True):
    """The body of `POST /email/batchWithTemplates`; each message is read for itself."""

    messages: list[Any]
