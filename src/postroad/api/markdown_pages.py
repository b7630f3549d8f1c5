"""`/llms.txt` and `/docs/*.md`: the documentation as plain Markdown, for agents and for people without a browser.

The pages are those of the folder `docs` of the repository; a wheel carries them. `/llms.txt` (llmstxt.org) is their
index: each page with its title and first sentence. A page is read when it is asked for. Its links to files that are not
served, such as images and the pages of client libraries, lead to the repository.
"""

import asyncio
import posixpath
import re
from collections.abc import Container, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import postroad
from postroad import errors
from postroad.concurrency import lazy_value
from postroad.web import routing

INDEX: Final = "/llms.txt"
TAG: Final = "Documentation"
MARKDOWN: Final = "text/markdown; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
# The pages change only with a release.
CACHE: Final = ("Cache-Control", "public, max-age=3600")
DECISIONS: Final = "decisions/"
SUMMARY: Final = (
    "A self-hosted transactional email service: it accepts mail over HTTP and SMTP, delivers it to mailbox providers, "
    "and reports results by webhooks. The API of this installation is described at /openapi.json."
)
# Where the files are that the pages refer to and a wheel does not carry; the folder docs is one of them.
REPOSITORY: Final = "https://github.com/postroad/postroad/blob/main/"
# `raw=true` gives the image itself, not the page about it.
IMAGES: Final = (".png", ".svg")
_LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
# The target of a link or an image, and of the elements that show a picture: a relative one, without its anchor.
_TARGET: Final = re.compile(r"""(\]\(|\b(?:src|srcset)=")(?![a-z]+:|[#/])([^)#"\s]+)""")
# A sentence ends before a capital letter: `1.0.0. It` has one end.
_SENTENCE: Final = re.compile(r".+?[.!?:](?=\s+[A-Z`*\[]|\s*$)", re.DOTALL)
# What a first sentence does not begin with: a title, a list, a table, an image, HTML, code.
_NO_TEXT: Final = ("#", "-", "|", "!", "<", "`" * 3)


def folder() -> Traversable:
    """The folder in the installed package, or that of the repository in a checkout."""
    installed = resources.files("postroad") / "docs"
    return installed if installed.is_dir() else Path(postroad.__file__).parent.parent.parent / "docs"


def pages() -> Mapping[str, Traversable]:
    """The pages by their path below `/docs/`: `api.md`, `decisions/0001-storage.md`."""
    top = folder()
    found = {entry.name: entry for entry in top.iterdir() if entry.name.endswith(".md")}
    records = {f"{DECISIONS}{entry.name}": entry for entry in (top / "decisions").iterdir()}
    return dict(sorted(found.items())) | dict(sorted(records.items()))


def title(page: str) -> str:
    """The title of a page."""
    return page.partition("\n")[0].removeprefix("# ").strip()


def first_sentence(page: str) -> str:
    """The first sentence of a page, as text of one line without links."""
    for paragraph in page.split("\n\n")[1:]:
        if not paragraph.startswith(_NO_TEXT):
            text = _LINK.sub(r"\1", " ".join(paragraph.split()))
            found = _SENTENCE.match(text)
            return found[0] if found else text
    return ""


def index(found: Mapping[str, Traversable]) -> str:
    """The list of the pages, in the format of llmstxt.org; decision records are the optional part."""
    guides: list[str] = []
    records: list[str] = []
    for name, file in found.items():
        page = file.read_text(encoding="utf-8")
        line = f"- [{title(page)}](/docs/{name}): {first_sentence(page)}"
        (records if name.startswith(DECISIONS) else guides).append(line)
    head = ["# Postroad", "", f"> {SUMMARY}", ""]
    return "\n".join([*head, "## Documentation", "", *guides, "", "## Optional", "", *records]) + "\n"


def with_links_that_work(text: str, name: str, served: Container[str]) -> str:
    """The text of a page, in which relative links to what is not served lead to the file in the repository."""

    def link(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(name), found[2]))
        if path.removeprefix("docs/") in served:
            return found[0]
        return f"{found[1]}{REPOSITORY}{path}{'?raw=true' if path.endswith(IMAGES) else ''}"

    return _TARGET.sub(link, text)


def routes() -> tuple[routing.Route[Any], ...]:
    """The routes of the index and of the pages."""
    found = pages()

    # Anybody may ask, and it takes reading every page.
    written = lazy_value.LazyValue(lambda: asyncio.to_thread(lambda: index(found).encode()))

    async def show_index(_context: object, _request: routing.Request) -> routing.Response:
        return routing.Response(200, await written.get(), content_type=TEXT, headers=(CACHE,))

    async def show(_context: object, request: routing.Request) -> routing.Response:
        return await _page(found, request.path["page"])

    async def show_decision(_context: object, request: routing.Request) -> routing.Response:
        return await _page(found, DECISIONS + request.path["page"])

    handlers = {INDEX: show_index, "/docs/{page}": show, "/docs/decisions/{page}": show_decision}
    return tuple(
        routing.Route(
            method="GET",
            path=path,
            handler=handler,
            summary="The documentation as Markdown",
            tag=TAG,
            permission=None,
            responses={200: bytes},
        )
        for path, handler in handlers.items()
    )


async def _page(found: Mapping[str, Traversable], name: str) -> routing.Response:
    """A page of the table; no other name reaches a file."""
    if name not in found:
        raise errors.NotFound(f"no such page; {INDEX} lists the pages")
    text = await asyncio.to_thread(found[name].read_text, encoding="utf-8")
    content = with_links_that_work(text, name, found).encode()
    return routing.Response(200, content, content_type=MARKDOWN, headers=(CACHE,))
