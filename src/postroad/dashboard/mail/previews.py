"""The content of a message, for its page and for the inbox: the views, the HTML document of the frame, the downloads.

Untrusted content enters our pages only as text. Its HTML is a separate document with its own policy, for a sandboxed
frame, and attachments are only downloaded (services/messages/previews.py).
"""

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Final, TypeVar

import msgspec

from postroad import errors
from postroad.dashboard.framework import navigation, requests
from postroad.protocol.text import html_height
from postroad.services.messages import content_checks, previews
from postroad.services.messages import lookup as messages
from postroad.web import routing

T = TypeVar("T")

# As in message.css.
DESKTOP_WIDTH: Final = 600
PHONE_WIDTH: Final = 375
EML: Final = "message/rfc822"
# More digits than the number of parts of any message has.
INDEX_DIGITS: Final = 4
# Reads the message that a request names, or raises.
Source = Callable[[requests.PageRequest], Awaitable[bytes]]
# How a message was sent, for its checks.
Origin = Callable[[], Awaitable[content_checks.Origin]]


class View(StrEnum):
    HTML = "html"
    TEXT = "text"
    HEADERS = "headers"
    SOURCE = "source"
    FILES = "files"
    CHECKS = "checks"


class Width(StrEnum):
    """How wide the frame of the HTML is: as most mail is designed, or as a phone."""

    DESKTOP = "desktop"
    PHONE = "phone"


class Scheme(StrEnum):
    """The color scheme that the message is told its reader prefers."""

    LIGHT = "light"
    DARK = "dark"


class DocumentQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    scheme: Scheme | None = None
    images: bool | None = None


class Query(DocumentQuery, frozen=True, forbid_unknown_fields=True):
    view: View | None = None
    width: Width | None = None


class PreviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """A message in one view; `source` is set in that view only. `path` is the URL of its parts."""

    path: str
    views: list[tuple[View, str]]
    view: View
    preview: previews.Preview
    source: previews.Source | None
    width: Width
    scheme: Scheme
    # How many remote images could be shown, and whether they are.
    remote_count: int
    images: bool
    # Of mail that was sent.
    report: content_checks.Report | None
    # Of the frame, which tells nobody how tall its content is.
    height: int
    # The search whose results the message is one of; links to this page keep it.
    search: str = ""

    def link(self, **changes: str) -> str:
        """The URL of this page with the HTML shown in another way."""
        usual = {"view": View.HTML, "width": self.width, "scheme": self.scheme, "images": _IMAGES[self.images]}
        return _url(self.path, {**usual, **changes, "search": self.search}) + "#preview"

    @property
    def document(self) -> str:
        return _url(f"{self.path}/preview/html", {"scheme": self.scheme, "images": _IMAGES[self.images]})


_IMAGES: Final = {False: "false", True: "true"}
_USUAL: Final = (Width.DESKTOP, Scheme.LIGHT, _IMAGES[False])


def _url(path: str, fields: Mapping[str, str]) -> str:
    """A URL; what is as usual is left out."""
    return navigation.url(path, **{name: str(value) for name, value in fields.items() if value not in _USUAL})


async def preview_page(
    request: requests.PageRequest, path: str, raw: bytes, query: Query, *, origin: Origin | None = None
) -> PreviewPage:
    """Parse a message for a view; if it lacks the wanted view, the first available one is shown.

    Mail of strangers has no `origin`, and is not checked.
    """
    preview = await _parse(request, lambda: previews.of_bytes(raw))
    views = _views(preview, has_checks=origin is not None)
    view = query.view if query.view in dict(views) else views[0][0]
    source = await _parse(request, lambda: previews.source_text(raw)) if view is View.SOURCE else None
    may_fetch = _may_fetch(request) and view is View.HTML
    urls = await _parse(request, lambda: previews.image_urls(preview.html or "")) if may_fetch else []
    report = None
    if origin is not None:
        sent = await origin()
        report = await content_checks.run(
            request.ctx, request.account_id, preview, sent, asks_spamd=view is View.CHECKS
        )
    width = query.width or Width.DESKTOP
    pixels = PHONE_WIDTH if width is Width.PHONE else DESKTOP_WIDTH
    return PreviewPage(
        path=path,
        views=views,
        view=view,
        preview=preview,
        source=source,
        width=width,
        scheme=query.scheme or Scheme.LIGHT,
        remote_count=len(urls),
        images=bool(query.images and urls),
        report=report,
        height=await _parse(request, lambda: html_height.estimate(preview.html or "", width=pixels)),
    )


def _views(preview: previews.Preview, *, has_checks: bool) -> list[tuple[View, str]]:
    count = len(preview.attachments)
    return [
        *([(View.HTML, "HTML")] if preview.html is not None else []),
        *([(View.TEXT, "Text")] if preview.text is not None else []),
        (View.HEADERS, "Headers"),
        (View.SOURCE, "Source"),
        *([(View.FILES, f"Attachments ({count})")] if count else []),
        *([(View.CHECKS, "Checks")] if has_checks else []),
    ]


def parts(path: str, source: Source) -> tuple[requests.SiteRoute, ...]:
    """The routes below `path`: the HTML document of the frame, the message and its attachments."""

    async def show_html(request: requests.PageRequest) -> routing.Response:
        query: DocumentQuery = request.query
        request.refuse_hidden(request.path["id"])

        async def read() -> previews.Download:
            raw = await source(request)
            preview = await _parse(request, lambda: previews.of_bytes(raw))
            images = await _remote_images(request, preview) if query.images else {}
            is_dark = query.scheme is Scheme.DARK
            body = await _parse(request, lambda: previews.html_document(preview, remote_images=images, is_dark=is_dark))
            return previews.Download("", previews.DOCUMENT_TYPE, body)

        begun = await previews.begin_download(request.ctx, request.account_id, read)
        return _answer(begun, previews.DOCUMENT_HEADERS)

    async def save_message(request: requests.PageRequest) -> routing.Response:
        async def read() -> previews.Download:
            # An id that was found consists of letters and digits.
            return previews.Download(f"{request.path['id']}.eml", EML, await source(request))

        begun = await previews.begin_download(request.ctx, request.account_id, read)
        return _answer(begun, previews.download_headers(begun.filename))

    async def save_file(request: requests.PageRequest) -> routing.Response:
        place = request.path["index"]
        if not (place.isascii() and place.isdigit() and len(place) <= INDEX_DIGITS):
            raise errors.NotFound("no such attachment in this message")

        async def read() -> previews.Download:
            raw = await source(request)
            return await _parse(request, lambda: previews.attachment_of(raw, int(place)))

        begun = await previews.begin_download(request.ctx, request.account_id, read)
        return _answer(begun, previews.download_headers(begun.filename))

    return (
        requests.get(f"{path}/preview/html", show_html, query=DocumentQuery, permission=requests.CONTENT),
        requests.get(f"{path}/raw", save_message, permission=requests.CONTENT, viewing=requests.Viewing.REFUSED),
        requests.get(
            f"{path}/attachments/{{index}}", save_file, permission=requests.CONTENT, viewing=requests.Viewing.REFUSED
        ),
    )


async def _remote_images(request: requests.PageRequest, preview: previews.Preview) -> dict[str, bytes]:
    if not _may_fetch(request):
        return {}
    urls = await _parse(request, lambda: previews.image_urls(preview.html or ""))
    return await previews.fetch_images(request.ctx, request.account_id, urls)


def _may_fetch(request: requests.PageRequest) -> bool:
    """Whether remote images are fetched: not for an operator, whose view their servers would learn of."""
    return request.ctx.settings.dashboard.remote_images and request.view is None


async def _parse(request: requests.PageRequest, work: Callable[[], T]) -> T:
    return await request.ctx.threads.run(request.account_id, work)


def _answer(begun: previews.StartedDownload, headers: requests.Headers) -> routing.Response:
    return routing.Response(200, begun.body, headers=headers, content_type=begun.content_type, length=begun.size)


async def _of_account(request: requests.PageRequest) -> bytes:
    return await messages.raw(request.ctx, request.account_id, request.path["id"])


ROUTES: Final = parts("/messages/{id}", _of_account)
