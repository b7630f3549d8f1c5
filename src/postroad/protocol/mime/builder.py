"""A message as bytes (RFC 5322, RFC 2045 to 2049), built without a library because it is on the hot path.

The structure follows the input: text, html, or both as `multipart/alternative`; files with a content id beside the html
in `multipart/related`; other files around it all in `multipart/mixed`. The same message gives the same bytes: date and
message id are arguments. There is no Bcc: recipients of blind copies are on the envelope only. Lines end in CRLF and
have at most 998 octets. Every string that reaches a header is checked on its way, whatever was checked before.
"""

import datetime as dt
import functools
import hashlib
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.protocol.mime import address, content_types, file_names, header_fields, transfer_encoding

MICROSECONDS: Final = 1_000_000
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
# Fields that this file writes, and `Bcc`, which is never written: a custom header may not be a second one of them.
OWN_FIELDS: Final = frozenset({"from", "to", "cc", "bcc", "reply-to", "subject", "date", "message-id", "mime-version"})
# Fields whose grammar has no place for encoded words (RFC 2047 section 5): they are addresses of things, not text.
ASCII_FIELDS: Final = frozenset(
    {
        "in-reply-to",
        "references",
        "list-archive",
        "list-help",
        "list-owner",
        "list-post",
        "list-subscribe",
        "list-unsubscribe",
        "list-unsubscribe-post",
    }
)
CONTENT_ID_PATTERN: Final = r"^(?!.*=\?)[A-Za-z0-9!#$%&'*+./=?^_`{|}~@\-]{1,128}$"
_CONTENT_ID: Final = re.compile(r"[A-Za-z0-9!#$%&'*+./=?^_`{|}~@\-]{1,128}")
_MESSAGE_ID: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=^_`{|}~.\-]{1,200}@[A-Za-z0-9.\-]{1,253}")
# Each try needs its own text in the body to clash, and a caller cannot know the message id beforehand.
_BOUNDARY_TRIES: Final = 100


class MimeError(ValueError):
    """The message cannot be built. The text names the field, says why, and is safe to show."""


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A file. One with a `content_id` belongs to the html, which shows it as `cid:<content_id>`."""

    filename: str
    content: bytes
    content_type: str
    content_id: str | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a message consists of. `date` is in microseconds since 1970; `message_id` is without its angle brackets."""

    from_: address.Mailbox
    to: Sequence[address.Mailbox]
    subject: str
    message_id: str
    date: int
    cc: Sequence[address.Mailbox] = ()
    reply_to: Sequence[address.Mailbox] = ()
    text: str | None = None
    html: str | None = None
    headers: Sequence[tuple[str, str]] = ()
    attachments: Sequence[Attachment] = ()

    @property
    def needs_smtputf8(self) -> bool:
        """Whether a header holds an address that only hosts with SMTPUTF8 can take (RFC 6532)."""
        return any(mailbox.needs_smtputf8 for mailbox in (self.from_, *self.reply_to, *self.to, *self.cc))


class _Entity(msgspec.Struct, frozen=True):
    """A part: its `Content-` fields, and its body in chunks, without a line end after the last line."""

    fields: str
    body: list[bytes]


def build(message: Message) -> bytes:
    """The whole message, ready for the wire, or a `MimeError`."""
    entity = _content(message)
    head = f"{_head(message)}MIME-Version: 1.0\r\n{entity.fields}\r\n"
    body = entity.body
    end = b"" if body[-1].endswith(b"\r\n") else b"\r\n"
    return b"".join((head.encode(), *body, end))


@functools.lru_cache(maxsize=8)  # messages of one second share it
def format_date(seconds: int) -> str:
    """The moment in RFC 5322's words (section 3.3), in UTC, whatever the locale."""
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return (
        f"{DAYS[moment.weekday()]}, {moment.day:02} {MONTHS[moment.month - 1]} {moment.year:04} "
        f"{moment.hour:02}:{moment.minute:02}:{moment.second:02} +0000"
    )


def check_content_id(content_id: str) -> None:
    """Refuse what cannot be named by `cid:` in the html (RFC 2392); narrower than the `msg-id` of RFC 5322."""
    if _CONTENT_ID.fullmatch(content_id) is None or "=?" in content_id:
        raise header_fields.HeaderError(
            "a content id is 1 to 128 ASCII letters, digits and signs, without spaces and angle brackets"
        )


def check_custom_header(name: str, value: str) -> None:
    """Refuse a header that this file writes itself, or that cannot stand in a message."""
    _custom_header(name, value)


@functools.lru_cache(maxsize=1024)  # most are those of earlier messages
def _custom_header(name: str, value: str) -> str:
    header_fields.check_name(name)
    lowered = name.lower()
    if lowered in OWN_FIELDS or lowered.startswith("content-"):
        raise header_fields.HeaderError("this header is generated from the other fields")
    if lowered in ASCII_FIELDS and not value.isascii():
        raise header_fields.HeaderError("this header allows only ASCII; percent-encode other characters in a URL")
    return header_fields.unstructured(name, value)


@functools.lru_cache(maxsize=1024)  # few senders send most of the mail
def _from_field(sender: address.Mailbox) -> str:
    return header_fields.addresses("From", (sender,))


def _head(message: Message) -> str:
    """Every field but those of MIME, in the order in which people expect them."""
    where = "from"
    try:
        lines = [_from_field(message.from_)]
        where = "to"
        if message.to:
            lines.append(header_fields.addresses("To", message.to))
        where = "cc"
        if message.cc:
            lines.append(header_fields.addresses("Cc", message.cc))
        where = "reply_to"
        if message.reply_to:
            lines.append(header_fields.addresses("Reply-To", message.reply_to))
        where = "subject"
        lines.append(header_fields.unstructured("Subject", message.subject))
        if _MESSAGE_ID.fullmatch(message.message_id) is None:
            raise MimeError("message_id: it must have the form 'name@domain', without angle brackets")
        lines.append(f"Date: {format_date(message.date // MICROSECONDS)}\r\nMessage-ID: <{message.message_id}>\r\n")
        for name, value in message.headers:
            where = f"headers[{name[: header_fields.MAX_NAME_CHARACTERS]!r}]"
            lines.append(_custom_header(name, value))
    except header_fields.HeaderError as error:
        raise MimeError(f"{where}: {error}") from None
    return "".join(lines)


def _content(message: Message) -> _Entity:
    """The parts, nested as their kinds ask for: mixed around alternative around related around html."""
    text = None if message.text is None else _text_entity("plain", message.text)
    html = None if message.html is None else _text_entity("html", message.html)
    # One by one: in Python 3.11 a comprehension is a call.
    readable = [] if text is None else [text]
    if html is not None:
        readable.append(html)
    if not message.attachments and len(readable) == 1:
        return readable[0]
    related: list[_Entity] = []
    mixed: list[_Entity] = []
    for index, attachment in enumerate(message.attachments):
        beside_html = html is not None and attachment.content_id is not None
        (related if beside_html else mixed).append(_file_entity(attachment, index=index))
    boundary = _boundary(message.message_id, [*readable, *related, *mixed])
    if related:
        readable[-1] = _multipart("related", f"{boundary}-1", [readable[-1], *related])
    if len(readable) > 1:
        readable = [_multipart("alternative", f"{boundary}-2", readable)]
    if mixed:
        return _multipart("mixed", f"{boundary}-3", readable + mixed)
    if not readable:
        raise MimeError("text: a message needs text, html or an attachment")
    return readable[0]


def _text_entity(subtype: str, text: str) -> _Entity:
    try:
        encoding, body = transfer_encoding.encode(text)
    except transfer_encoding.BodyError as error:
        raise MimeError(f"{'text' if subtype == 'plain' else subtype}: {error}") from None
    fields = f"Content-Type: text/{subtype}; charset=utf-8\r\nContent-Transfer-Encoding: {encoding}\r\n"
    return _Entity(fields, [body])


def _file_entity(attachment: Attachment, *, index: int) -> _Entity:
    where = "content_type"
    try:
        words = content_types.check(attachment.content_type)
        is_text = words[0].lower().startswith("text/")
        if is_text:
            words = content_types.with_charset(words, attachment.content)
        pieces = [header_fields.Piece(" ", f"{word};") for word in words[:-1]] + [header_fields.Piece(" ", words[-1])]
        fields = header_fields.fold("Content-Type", pieces)
        where = "filename"
        kind = "attachment" if attachment.content_id is None else "inline"
        fields += file_names.content_disposition(kind, attachment.filename)
        where = "content_id"
        if attachment.content_id is not None:
            check_content_id(attachment.content_id)
            fields += header_fields.fold("Content-ID", [header_fields.Piece(" ", f"<{attachment.content_id}>")])
        where = "content_type"
        encode = transfer_encoding.encode_text_file if is_text else transfer_encoding.encode_file
        if content_types.is_message(words[0]):
            encode = transfer_encoding.encode_message
        encoding, body = encode(attachment.content)
    except (header_fields.HeaderError, content_types.ContentTypeError, transfer_encoding.BodyError) as error:
        raise MimeError(f"attachments[{index}].{where}: {error}") from None
    return _Entity(f"{fields}Content-Transfer-Encoding: {encoding}\r\n", [body])


def _multipart(subtype: str, boundary: str, entities: list[_Entity]) -> _Entity:
    chunks: list[bytes] = []
    between = f"--{boundary}\r\n"
    for entity in entities:
        chunks.append(f"{between}{entity.fields}\r\n".encode("ascii"))
        chunks += entity.body
        between = f"\r\n--{boundary}\r\n"
    chunks.append(f"\r\n--{boundary}--".encode("ascii"))
    return _Entity(f'Content-Type: multipart/{subtype};\r\n boundary="{boundary}"\r\n', chunks)


def _boundary(message_id: str, entities: list[_Entity]) -> str:
    """A boundary derived from the message id that occurs in no body.

    Base64 cannot contain `=_`; files of many megabytes need not be searched. A body that is sent as it is can.
    """
    for attempt in range(_BOUNDARY_TRIES):
        boundary = "=_" + hashlib.sha256(f"{attempt}{message_id}".encode()).hexdigest()[:32]
        # All of it: the search for something shorter, such as its beginning, takes three times as long.
        needle = boundary.encode("ascii")
        for entity in entities:
            if not entity.fields.endswith(" base64\r\n") and needle in entity.body[0]:
                break
        else:
            return boundary
    raise MimeError("text: it contains every boundary that was tried to separate the parts")
