"""What a preview shows of a message: header, text, HTML in a frame, attachments, source, images; and downloads."""

import asyncio
import binascii
import contextlib
import time
import types
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.protocol.mime import content_types, file_names, preview_parser
from postroad.protocol.text import html_preview
from postroad.services import usage_limits
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
        account_id, lambda: html_preview.render(shown, lambda _: None, is_dark=is_dark).encode("utf-8", "replace")
    )


def attachment_of(raw: bytes, index: int) -> Download:
    reading = preview_parser.read(raw)
    if not 0 <= index < len(reading.parts):
        raise errors.NotFound("no such attachment in this message")
    part = reading.parts[index]
    return Download(_filename(part), DOWNLOAD_TYPE, reading.body(part))


def download_headers(filename: str) -> tuple[tuple[str, str], ...]:
    """Headers that make a browser save a response under a safe name; all responses are `nosniff`."""
    return (
        ("Content-Disposition", file_names.download_disposition(filename)),
        ("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'"),
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


# Downloads: a file streamed to its caller.
#
# A slot is held from before the file is read until the last part is sent. A caller that requests much and reads nothing
# makes the process hold as many files as there are slots, not as many as there are connections. Small files are sent
# whole. The listener disconnects a caller that does not read at all (`write_seconds`); one that reads very slowly is
# ended here.

Parts = AsyncGenerator[bytes, None]
Read = Callable[[], Awaitable[Download]]

# A file has at most 10 MiB, and is held while it is downloaded.
DOWNLOADS: Final = usage_limits.WorkLimit("downloads", per_account=8, per_process=32, retry_seconds=5)
# No larger than our own pages may be.
SMALL_OCTETS: Final = 256 * 1024
# A connection's buffers hold about as much again.
PART_OCTETS: Final = 64 * 1024
# 10 MiB at 140 kbit/s, slower than any usual connection.
DOWNLOAD_SECONDS: Final = 600.0


@dataclass(frozen=True, slots=True)
class StartedDownload:
    """A download in progress, in non-empty parts unless it is small."""

    filename: str
    content_type: str
    size: int
    body: bytes | Parts = field(repr=False)


async def begin_download(
    ctx: context.Context, account_id: str, read: Read, *, seconds: float = DOWNLOAD_SECONDS
) -> StartedDownload:
    """Read a file and stream it. Raises RateLimited when no slot is free, and whatever `read` raises."""
    end = time.monotonic() + seconds
    with contextlib.ExitStack() as place:
        place.enter_context(usage_limits.acquire(ctx, DOWNLOADS, account_id))
        file = await read()
        size = len(file.body)
        if size <= SMALL_OCTETS:
            return StartedDownload(file.filename, file.content_type, size, file.body)
        parts = _parts(file.body, place=place.pop_all(), end=end)
        # Only a started generator can be closed: from here on it releases the slot.
        await anext(parts)
        return StartedDownload(file.filename, file.content_type, size, parts)


async def _parts(body: bytes, *, place: contextlib.ExitStack, end: float) -> Parts:
    with place:
        yield b""  # to `begin` alone
        for at in range(0, len(body), PART_OCTETS):
            if time.monotonic() >= end:
                raise errors.ServiceUnavailable("the download was read too slowly", retry_after=DOWNLOADS.retry_seconds)
            yield body[at : at + PART_OCTETS]


# Remote images of a message, fetched by the service when a person asks for them.
#
# Whoever serves an image learns that the message was looked at, and nothing about the reader: the request has the
# service's address, and no cookie, no referrer and no name of a browser. The images become part of the document (data
# URIs), so that the policy of the frame, which loads nothing, need not change, and only images that the message names
# can be fetched. URLs and addresses pass the SSRF guard of webhooks, also after a redirect.

# More than a newsletter has; the rest is not shown.
MAX_IMAGES: Final = 40
# For all images together: a person waits.
FETCH_SECONDS: Final = 10.0
MAX_CONCURRENT_FETCHES: Final = 6
# As most links for tracking and content delivery networks need.
MAX_REDIRECTS: Final = 3
# Some 20 MiB are in memory for each.
FETCHES: Final = usage_limits.WorkLimit("remote images", per_account=2, per_process=6, retry_seconds=5)
# Some hosts refuse requests without a User-Agent. It is the same for all installations and all readers.
FETCH_HEADERS: Final = (
    ("User-Agent", "Mozilla/5.0 (compatible; ImageProxy)"),
    ("Accept", "image/webp,image/png,image/jpeg,image/gif"),
)
# Browsers encode other characters; what is encoded already stays.
_SAFE: Final = "%/:?&=~+!$,;'@()*[]"


def image_urls(html: str) -> list[str]:
    return html_preview.remote_images(html)[:MAX_IMAGES]


async def fetch_images(ctx: context.Context, account_id: str, urls: list[str]) -> dict[str, bytes]:
    """The images that could be fetched, by URL. Raises RateLimited when the account has no free slot."""
    fetcher = _Fetcher(ctx, account_id)
    with usage_limits.acquire(ctx, FETCHES, account_id):
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_CONCURRENT_FETCHES):
                group.create_task(fetcher.work(urls))
    return fetcher.images


class _Fetcher:
    """Fetches images, several at once, within limits that they share."""

    def __init__(self, ctx: context.Context, account_id: str) -> None:
        self._ctx = ctx
        self._rate = f"images {account_id}"
        self._next = 0
        self._ends_at = time.monotonic() + FETCH_SECONDS
        self._octets_left = IMAGES_OCTETS
        self.images: dict[str, bytes] = {}

    async def work(self, urls: list[str]) -> None:
        """Fetch the next image until there is none."""
        while self._next < len(urls) and self._octets_left > 0:
            url = urls[self._next]
            self._next += 1
            try:
                # Before it is fetched: the rate bounds what others see of us.
                self._ctx.rate_limiter.take(self._rate, now=self._ctx.clock())
                image = await self._fetch(url)
            except (errors.InvalidRequest, errors.RateLimited):
                continue
            self._octets_left -= len(image)
            self.images[url] = image

    async def _fetch(self, url: str) -> bytes:
        return await self._ctx.webhook_client.fetch(
            parse.quote(url.strip().partition("#")[0], safe=_SAFE),
            max_bytes=IMAGE_OCTETS,
            seconds=max(0.0, self._ends_at - time.monotonic()),
            redirects=MAX_REDIRECTS,
            headers=FETCH_HEADERS,
        )
