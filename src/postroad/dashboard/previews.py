"""What is in a message, for its page and for that of the inbox: the views, the frame's document, and the downloads.

Nothing of a stranger's message becomes part of a page of ours but as text. Its HTML is a document of its own under its
own policy, for a sandboxed frame, and its files are only ever saved (services/previews.py).
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import site as sites
from postroad.dashboard import visits
from postroad.services import context, downloads, messages, previews
from postroad.web import routing

EML: Final = "message/rfc822"
# No message has more parts than this many digits can count.
INDEX_DIGITS: Final = 4
# Gives the bytes of the message that a request names, or refuses.
Source = Callable[[visits.Visit], Awaitable[bytes]]


class View(StrEnum):
    """The ways to look at a message."""

    HTML = "html"
    TEXT = "text"
    HEADERS = "headers"
    SOURCE = "source"
    FILES = "files"


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which view."""

    view: View | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """A message in one view; `source` is there in that view only. `path` is where its parts are found."""

    path: str
    views: list[tuple[View, str]]
    view: View
    preview: previews.Preview
    source: previews.Source | None


async def shown(path: str, raw: bytes, wanted: View | None) -> Shown:
    """Look into a message; a view that it does not have gives way to the first that it has."""
    is_large = len(raw) > previews.LARGE_OCTETS
    # Others wait for the event loop meanwhile.
    preview = await asyncio.to_thread(previews.of_bytes, raw) if is_large else previews.of_bytes(raw)
    views = _views(preview)
    view = wanted if wanted in dict(views) else views[0][0]
    return Shown(path, views, view, preview, previews.source_text(raw) if view is View.SOURCE else None)


def _views(preview: previews.Preview) -> list[tuple[View, str]]:
    count = len(preview.attachments)
    return [
        *([(View.HTML, "HTML")] if preview.html is not None else []),
        *([(View.TEXT, "Text")] if preview.text is not None else []),
        (View.HEADERS, "Headers"),
        (View.SOURCE, "Source"),
        *([(View.FILES, f"Attachments ({count})")] if count else []),
    ]


def parts(site: sites.Site, path: str, source: Source) -> tuple[routing.Route[context.Context], ...]:
    """The frame's document, the whole message and its files, below the page at `path`."""

    async def show_html(visit: visits.Visit) -> routing.Answer:
        async def read() -> previews.Download:
            raw = await source(visit)
            body = await asyncio.to_thread(lambda: previews.html_document(previews.of_bytes(raw)))
            return previews.Download("", previews.DOCUMENT_TYPE, body)

        begun = await downloads.begin(visit.ctx, visit.account_id, read)
        return _answer(begun, previews.DOCUMENT_HEADERS)

    async def save_message(visit: visits.Visit) -> routing.Answer:
        async def read() -> previews.Download:
            # Once the id is found, it is letters and digits.
            return previews.Download(f"{visit.request.path['id']}.eml", EML, await source(visit))

        begun = await downloads.begin(visit.ctx, visit.account_id, read)
        return _answer(begun, previews.download_headers(begun.filename))

    async def save_file(visit: visits.Visit) -> routing.Answer:
        index = _index(visit.request.path["index"])

        async def read() -> previews.Download:
            return await asyncio.to_thread(previews.attachment_of, await source(visit), index)

        begun = await downloads.begin(visit.ctx, visit.account_id, read)
        return _answer(begun, previews.download_headers(begun.filename))

    return (
        visits.look(site, f"{path}/preview/html", show_html),
        visits.look(site, f"{path}/raw", save_message),
        visits.look(site, f"{path}/attachments/{{index}}", save_file),
    )


def _answer(begun: downloads.Begun, headers: visits.Headers) -> routing.Answer:
    return routing.Answer(200, begun.body, headers=headers, content_type=begun.content_type, length=begun.size)


def _index(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= INDEX_DIGITS):
        raise errors.NotFound("there is no such attachment in this message")
    return int(text)


async def _of_account(visit: visits.Visit) -> bytes:
    return await messages.raw(visit.ctx, visit.account_id, visit.request.path["id"])


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """What is in messages of the account."""
    return parts(site, "/messages/{id}", _of_account)
