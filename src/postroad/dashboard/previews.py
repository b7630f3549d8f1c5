"""The content of a message, for its page and for the inbox: the views, the HTML document of the frame, the downloads.

Untrusted content enters our pages only as text. Its HTML is a separate document with its own policy, for a sandboxed
frame, and attachments are only downloaded (services/messages/previews.py).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from postroad import errors
from postroad.dashboard import requests
from postroad.services.messages import downloads, previews
from postroad.services.messages import lookup as messages
from postroad.web import routing

T = TypeVar("T")

EML: Final = "message/rfc822"
# More digits than the number of parts of any message has.
INDEX_DIGITS: Final = 4
# Reads the message that a request names, or raises.
Source = Callable[[requests.PageRequest], Awaitable[bytes]]


class View(StrEnum):
    """The views of a message."""

    HTML = "html"
    TEXT = "text"
    HEADERS = "headers"
    SOURCE = "source"
    FILES = "files"


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which view."""

    view: View | None = None


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """A message in one view; `source` is set in that view only. `path` is the URL of its parts."""

    path: str
    views: list[tuple[View, str]]
    view: View
    preview: previews.Preview
    source: previews.Source | None


async def preview_page(request: requests.PageRequest, path: str, raw: bytes, *, wanted: View | None) -> PreviewPage:
    """Parse a message for a view; if it lacks the wanted view, the first available one is shown."""
    preview = await _parse(request, raw, lambda: previews.of_bytes(raw))
    views = _views(preview)
    view = wanted if wanted in dict(views) else views[0][0]
    return PreviewPage(path, views, view, preview, previews.source_text(raw) if view is View.SOURCE else None)


def _views(preview: previews.Preview) -> list[tuple[View, str]]:
    count = len(preview.attachments)
    return [
        *([(View.HTML, "HTML")] if preview.html is not None else []),
        *([(View.TEXT, "Text")] if preview.text is not None else []),
        (View.HEADERS, "Headers"),
        (View.SOURCE, "Source"),
        *([(View.FILES, f"Attachments ({count})")] if count else []),
    ]


def parts(path: str, source: Source) -> tuple[requests.SiteRoute, ...]:
    """The routes below `path`: the HTML document of the frame, the message and its attachments."""

    async def show_html(request: requests.PageRequest) -> routing.Response:
        async def read() -> previews.Download:
            raw = await source(request)
            body = await _parse(request, raw, lambda: previews.html_document(previews.of_bytes(raw)))
            return previews.Download("", previews.DOCUMENT_TYPE, body)

        begun = await downloads.begin(request.ctx, request.account_id, read)
        return _answer(begun, previews.DOCUMENT_HEADERS)

    async def save_message(request: requests.PageRequest) -> routing.Response:
        async def read() -> previews.Download:
            # An id that was found consists of letters and digits.
            return previews.Download(f"{request.path['id']}.eml", EML, await source(request))

        begun = await downloads.begin(request.ctx, request.account_id, read)
        return _answer(begun, previews.download_headers(begun.filename))

    async def save_file(request: requests.PageRequest) -> routing.Response:
        index = _index(request.path["index"])

        async def read() -> previews.Download:
            raw = await source(request)
            return await _parse(request, raw, lambda: previews.attachment_of(raw, index))

        begun = await downloads.begin(request.ctx, request.account_id, read)
        return _answer(begun, previews.download_headers(begun.filename))

    return (
        requests.get(f"{path}/preview/html", show_html),
        requests.get(f"{path}/raw", save_message),
        requests.get(f"{path}/attachments/{{index}}", save_file),
    )


async def _parse(request: requests.PageRequest, raw: bytes, work: Callable[[], T]) -> T:
    return await previews.in_thread(request.ctx, request.account_id, work, octets=len(raw))


def _answer(begun: downloads.StartedDownload, headers: requests.Headers) -> routing.Response:
    return routing.Response(200, begun.body, headers=headers, content_type=begun.content_type, length=begun.size)


def _index(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= INDEX_DIGITS):
        raise errors.NotFound("no such attachment in this message")
    return int(text)


async def _of_account(request: requests.PageRequest) -> bytes:
    return await messages.raw(request.ctx, request.account_id, request.path["id"])


ROUTES: Final = parts("/messages/{id}", _of_account)
