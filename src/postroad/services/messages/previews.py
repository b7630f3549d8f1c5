"""What a preview shows of a message: header, text, HTML in a frame, attachments, source.

All content is treated as hostile, and every function accepts any bytes. It is parsed beside the event loop: 64 KiB of
tags take almost a tenth of a second.

HTML is shown behind three protections: the frame's `sandbox` attribute (without any `allow-`), `DOCUMENT_HEADERS` on
the response that fills the frame, which sandbox it also when it is opened directly, and `html_document`, which removes
what those two cannot stop. Attachments are never shown, only saved: `download_headers` and a type that no browser
opens.
"""

import binascii
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad import errors
from postroad.protocol import download_names, html_preview
from postroad.protocol.mime import content_types, preview_parser
from postroad.services import context
from postroad.services.messages import lookup as messages

# More than anybody reads, and some hundredths of a second to prepare.
TEXT_CHARACTERS: Final = 512 * 1024
SOURCE_OCTETS: Final = 256 * 1024
IMAGE_OCTETS: Final = 2 * 1024 * 1024
# Over all references to images: one image in a thousand places counts a thousand times.
IMAGES_OCTETS: Final = 8 * 1024 * 1024

POLICY: Final = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; font-src data:; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'self'; sandbox"
)
DOCUMENT_TYPE: Final = "text/html; charset=utf-8"
DOCUMENT_HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("X-DNS-Prefetch-Control", "off"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
DOWNLOAD_TYPE: Final = "application/octet-stream"
DOWNLOAD_POLICY: Final = "sandbox; default-src 'none'; frame-ancestors 'none'"

# By their first bytes: the declared type of a part is not trusted.
_IMAGES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_EXTENSIONS: Final = {kind: extension for extension, kind in content_types.TYPES.items()}
# The symbols for control characters begin at U+2400; C1 and bidirectional controls have none.
_PICTURES: Final = (
    {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"}
    | {0x7F: "\u2421"}
    | dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029], "\ufffd")
)


class Attachment(msgspec.Struct, frozen=True, kw_only=True):
    """A part that is not shown as text. `inline`: it belongs to the text, such as an image."""

    index: int
    filename: str
    content_type: str
    size: int
    content_id: str
    inline: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A message for display. `truncated`: something exceeded a limit and is left out."""

    headers: tuple[tuple[str, str], ...]
    text: str | None
    html: str | None
    attachments: list[Attachment]
    size: int
    truncated: bool
    reading: preview_parser.ParsedMessage = field(repr=False)


@dataclass(frozen=True, slots=True)
class Download:
    """A file to be saved."""

    filename: str
    content_type: str
    body: bytes = field(repr=False)


class Source(msgspec.Struct, frozen=True):
    """The beginning of the raw message as text; `cut` when there is more."""

    text: str
    cut: bool


async def of_message(ctx: context.Context, account_id: str, message_id: str) -> Preview:
    """The preview of a message of an account; NotFound as in `lookup.raw`."""
    raw = await messages.raw(ctx, account_id, message_id)
    return await ctx.threads.run(account_id, lambda: of_bytes(raw))


def of_bytes(raw: bytes) -> Preview:
    """The preview of raw bytes."""
    reading = preview_parser.read(raw)
    plain, markup = _shown_part(reading, "text/plain"), _shown_part(reading, "text/html")
    text, text_cut = _text(reading, plain)
    html, html_cut = _text(reading, markup)
    return Preview(
        headers=reading.headers,
        text=text,
        html=html,
        attachments=[_attachment(part) for part in reading.parts if part not in (plain, markup)],
        size=len(raw),
        truncated=reading.truncated or text_cut or html_cut,
        reading=reading,
    )


def html_document(
    preview: Preview, *, remote_images: Mapping[str, bytes] = types.MappingProxyType({}), is_dark: bool = False
) -> bytes:
    """The HTML for the sandboxed frame, with the message's own images; to be sent with `DOCUMENT_HEADERS`.

    `remote_images` are those that were fetched, by URL.
    """
    images = _Images(preview.reading, remote_images)
    document = html_preview.render(preview.html or "", images.uri, remote_image=images.remote_uri, is_dark=is_dark)
    return document.encode("utf-8", "replace")


async def of_html(ctx: context.Context, account_id: str, html: str, *, is_dark: bool = False) -> bytes:
    """HTML that is not in a message, for the frame, up to the limit; to be sent with `DOCUMENT_HEADERS`."""
    shown = html[:TEXT_CHARACTERS]
    return await ctx.threads.run(
        account_id, lambda: html_preview.render(shown, _no_image, is_dark=is_dark).encode("utf-8", "replace")
    )


def attachment_of(raw: bytes, index: int) -> Download:
    """A part of a message, by its index in the preview."""
    reading = preview_parser.read(raw)
    if not 0 <= index < len(reading.parts):
        raise errors.NotFound("no such attachment in this message")
    part = reading.parts[index]
    return Download(_filename(part), DOWNLOAD_TYPE, reading.body(part))


def download_headers(filename: str) -> tuple[tuple[str, str], ...]:
    """Headers that make a browser save a response under a safe name; all responses are `nosniff`."""
    return (
        ("Content-Disposition", download_names.content_disposition(filename)),
        ("Content-Security-Policy", DOWNLOAD_POLICY),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    )


def source_text(raw: bytes) -> Source:
    """The beginning of the bytes as text; invalid UTF-8 is replaced, and control characters become symbols."""
    text = raw[:SOURCE_OCTETS].decode("utf-8", "replace").replace("\r\n", "\n")
    return Source(text.translate(_PICTURES), len(raw) > SOURCE_OCTETS)


class _Images:
    """The images of a message as data URIs, up to the limit."""

    def __init__(self, reading: preview_parser.ParsedMessage, remote: Mapping[str, bytes]) -> None:
        self._reading = reading
        self._remote = remote
        self._parts = {part.content_id: part for part in reversed(reading.parts) if part.content_id}
        self._made: dict[str, str] = {}
        self._room = IMAGES_OCTETS

    def uri(self, content_id: str) -> str | None:
        part = self._parts.get(content_id)
        return None if part is None else self._uri(content_id, part.size, lambda: self._reading.body(part))

    def remote_uri(self, url: str) -> str | None:
        octets = self._remote.get(url)
        return None if octets is None else self._uri(url, len(octets), lambda: octets)

    def _uri(self, name: str, size: int, octets: Callable[[], bytes]) -> str | None:
        if size > min(IMAGE_OCTETS, self._room):
            return None
        if name not in self._made:
            self._made[name] = _data_uri(octets())
        self._room -= size
        return self._made[name] or None


def _no_image(content_id: str) -> None:
    del content_id


def _data_uri(octets: bytes) -> str:
    """A data URI; empty for what is not an image that every browser shows safely."""
    kind = next((kind for magic, kind in _IMAGES if octets.startswith(magic)), None)
    if octets[:4] == b"RIFF" and octets[8:12] == b"WEBP":
        kind = "image/webp"
    return f"data:{kind};base64,{binascii.b2a_base64(octets, newline=False).decode()}" if kind else ""


def _shown_part(reading: preview_parser.ParsedMessage, content_type: str) -> preview_parser.Part | None:
    """The first part of a type that is not an attachment."""
    for part in reading.parts:
        if part.content_type == content_type and part.disposition != "attachment" and part.filename is None:
            return part
    return None


def _text(reading: preview_parser.ParsedMessage, part: preview_parser.Part | None) -> tuple[str | None, bool]:
    return (None, False) if part is None else reading.text(part, max_length=TEXT_CHARACTERS)


def _attachment(part: preview_parser.Part) -> Attachment:
    return Attachment(
        index=part.index,
        filename=_filename(part),
        content_type=part.content_type,
        size=part.size,
        content_id=part.content_id,
        inline=part.disposition == "inline" or bool(part.content_id and part.disposition != "attachment"),
    )


def _filename(part: preview_parser.Part) -> str:
    return part.filename or f"part-{part.path}.{_EXTENSIONS.get(part.content_type, 'bin')}"
