"""What a mail that came in says: addresses, text, HTML, header fields and files, for its event and the API.

Text, HTML and files are those of its preview, which also bounds them; what exceeds a bound is omitted and `truncated`
set. Addresses are read as strictly as everywhere, and where that fails as far as they make sense: nothing here proves
who sent the mail (`mail/authentication/`).
"""

import hashlib
import itertools
import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from postroad.model.units import times
from postroad.protocol.mime import address, address_lists, header_fields, part_walker, preview_parser
from postroad.services.messages import previews

# A hundred addresses fit into one field.
MAX_FIELD_CHARACTERS: Final = 16_000
# One is right, and some programs write several.
MAX_FIELDS: Final = 3
MAX_ADDRESSES: Final = address_lists.MAX_ADDRESSES
# More elements than addresses: a comma in a name divides it in two.
MAX_ELEMENTS: Final = 2 * MAX_ADDRESSES
# RFC 5322 section 2.1.1, folded a few times.
MAX_LINE_CHARACTERS: Final = 4_000
# A long way leaves some dozens of fields.
MAX_HEADERS: Final = 300
MAX_HEADER_CHARACTERS: Final = 64 * 1024
# A name, an address, and what lists show of both.
MAX_SHOWN_CHARACTERS: Final = 500
# A thread of some weeks has as many.
MAX_REFERENCES: Final = 100
# Of files in an event of another service: an endpoint that is slow keeps many events in memory.
MAX_CONTENT_BYTES: Final = 1024 * 1024

_MESSAGE_ID: Final = re.compile(rf"<[^<>\s{address.UNSEEN}]{{1,995}}+>")
_LAST_ANGLE: Final = re.compile(r"([^<>]*+)<([^<>]++)>[ \t]*+")


class Address(msgspec.Struct, frozen=True):
    """An address in A-labels; empty if none can be read, and then the name is what stands there."""

    address: str
    name: str


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A part that is neither the text nor the HTML. `index` is what it is downloaded by.

    `content` is there as long as all of them have at most MAX_CONTENT_BYTES.
    """

    index: int
    filename: str
    content_type: str
    size: int
    content_id: str
    disposition: Literal["inline", "attachment"]
    sha256: str
    content: bytes | None


class ReceivedMail(msgspec.Struct, frozen=True, kw_only=True):
    """The envelope and the content; `date` is in microseconds. A Message-ID has its angle brackets."""

    envelope_sender: str
    envelope_recipients: tuple[str, ...]
    sender: tuple[Address, ...]
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    reply_to: tuple[Address, ...]
    subject: str
    date: int | None
    message_id: str | None
    in_reply_to: tuple[str, ...]
    references: tuple[str, ...]
    text: str | None
    html: str | None
    headers: tuple[tuple[str, str], ...]
    attachments: tuple[File, ...]
    size: int
    truncated: bool


def read(content: bytes, *, sender: str, recipients: tuple[str, ...]) -> ReceivedMail:
    """The mail with this envelope. It costs as much as a preview and a checksum: in a thread for what may be large."""
    preview = previews.of_bytes(content)
    # As they were written: what is decoded first may look like another address.
    header = _Header(part_walker.Walker(content, preview_parser.BOUNDS).root)
    headers = tuple(_first_headers(preview.headers))
    return ReceivedMail(
        envelope_sender=sender,
        envelope_recipients=recipients,
        sender=header.addresses("from"),
        to=header.addresses("to"),
        cc=header.addresses("cc"),
        reply_to=header.addresses("reply-to"),
        subject=next((value for name, value in preview.headers if name.lower() == "subject"), "")[:MAX_LINE_CHARACTERS],
        date=times.parse_mail_date(header.first("date")[:MAX_LINE_CHARACTERS]),
        message_id=next(iter(header.message_ids("message-id")), None),
        in_reply_to=header.message_ids("in-reply-to"),
        references=header.message_ids("references"),
        text=preview.text,
        html=preview.html,
        headers=headers,
        attachments=tuple(_files(preview)),
        size=len(content),
        truncated=preview.truncated or header.truncated or len(headers) < len(preview.headers),
    )


def shown(addresses: tuple[Address, ...]) -> str:
    """The first of these as people see it, in one line."""
    for each in addresses[:1]:
        text = f"{each.name} <{each.address}>" if each.name and each.address else each.name or each.address
        return text[:MAX_SHOWN_CHARACTERS]
    return ""


class _Header:
    """The fields of a mail; `truncated`: one of those that were asked for exceeds a bound."""

    def __init__(self, root: part_walker.Entity) -> None:
        self._root = root
        self.truncated = False

    def first(self, name: str) -> str:
        return next(iter(self._values(name)), "")

    def message_ids(self, name: str) -> tuple[str, ...]:
        """The newest come last."""
        return tuple(_MESSAGE_ID.findall(self.first(name)))[-MAX_REFERENCES:]

    def addresses(self, name: str) -> tuple[Address, ...]:
        found = [each for value in self._values(name) for each in _addresses(value)]
        self.truncated = self.truncated or len(found) > MAX_ADDRESSES
        return tuple(found[:MAX_ADDRESSES])

    def _values(self, name: str) -> list[str]:
        found = [value for given, value in self._root.fields if given.lower() == name]
        self.truncated = self.truncated or len(found) > MAX_FIELDS or any(map(_is_long, found))
        return [value[:MAX_FIELD_CHARACTERS] for value in found[:MAX_FIELDS]]


def _addresses(value: str) -> Iterator[Address]:
    try:
        for mailbox in address_lists.parse_list(value):
            yield Address(mailbox.address, mailbox.display_name or "")
    except address.AddressError:
        yield from _readable(value)


def _readable(value: str) -> Iterator[Address]:
    """What can be read of a list that is not one: each element by itself."""
    found = 0
    for element in value.split(",", MAX_ELEMENTS)[:MAX_ELEMENTS]:
        angle = _LAST_ANGLE.fullmatch(element)
        name, written = angle.groups() if angle else ("", element.strip())
        try:
            mailbox = address.parse(written)
        except address.AddressError:
            continue
        found += 1
        yield Address(mailbox.address, _shown(name).strip(' "'))
    if not found and value:
        yield Address("", _shown(value))


def _shown(text: str) -> str:
    return preview_parser.shown(header_fields.decode_words(text))[:MAX_LINE_CHARACTERS]


def _first_headers(headers: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
    room = MAX_HEADER_CHARACTERS
    for name, value in itertools.islice(headers, MAX_HEADERS):
        room -= len(name) + len(value)
        if room < 0:
            return
        yield name, value


def _files(preview: previews.Preview) -> Iterator[File]:
    room = MAX_CONTENT_BYTES
    for attachment in preview.attachments:
        body = preview.reading.body(preview.reading.parts[attachment.index])
        room -= len(body)
        yield File(
            index=attachment.index,
            filename=attachment.filename,
            content_type=attachment.content_type,
            size=attachment.size,
            content_id=attachment.content_id,
            disposition="inline" if attachment.inline else "attachment",
            sha256=hashlib.sha256(body).hexdigest(),
            content=body if room >= 0 else None,
        )


def _is_long(value: str) -> bool:
    return len(value) > MAX_FIELD_CHARACTERS
