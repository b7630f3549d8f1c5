"""`/openapi.json`, `/docs`, `/llms.txt` and `/docs/*.md`: the documentation for people and tools, offline."""

import asyncio
import posixpath
import re
from collections.abc import Container, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import msgspec

import postroad
from postroad import errors
from postroad.api import openapi
from postroad.concurrency import caches
from postroad.web import routing

TAG: Final = "Documentation"
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Files and pages change only with a release.
CACHE: Final = ("Cache-Control", "public, max-age=3600")
FILES: Final = (
    ("/docs/swagger-ui.css", "swagger-ui/swagger-ui.css", "text/css; charset=utf-8"),
    ("/docs/swagger-ui-bundle.js", "swagger-ui/swagger-ui-bundle.js", "text/javascript; charset=utf-8"),
    ("/docs/start.js", "start.js", "text/javascript; charset=utf-8"),
)


def routes(
    described: Sequence[routing.Route[routing.ContextT]], *, version: str
) -> tuple[routing.Route[routing.ContextT], ...]:
    """The documentation routes for the described routes."""

    def describe() -> bytes:
        return msgspec.json.encode(openapi.document(described, version=version))

    document = caches.LazyValue(lambda: asyncio.to_thread(describe))

    async def show(_context: object, _request: routing.Request) -> routing.Response:
        return routing.Response(200, await document.get())

    page = routing.Response(
        200,
        _static("page.html"),
        content_type="text/html; charset=utf-8",
        headers=(("Content-Security-Policy", POLICY),),
    )
    return (
        _route("/openapi.json", show, summary="The OpenAPI document"),
        _fixed("/docs", page, summary="Interactive API documentation"),
        *(
            _fixed(
                path,
                routing.Response(200, _static(name), content_type=kind, headers=(CACHE,)),
                summary="A static file of the documentation",
            )
            for path, name, kind in FILES
        ),
    )


def _static(name: str) -> bytes:
    return resources.files(__package__).joinpath("static", name).read_bytes()


def _fixed(path: str, answer: routing.Response, *, summary: str) -> routing.Route[Any]:
    async def give(_context: object, _request: routing.Request) -> routing.Response:
        return answer

    return _route(path, give, summary=summary)


def _route(path: str, handler: routing.Handler[Any], *, summary: str) -> routing.Route[Any]:
    return routing.Route(
        method="GET", path=path, handler=handler, summary=summary, tag=TAG, permission=None, responses={200: bytes}
    )


# `/llms.txt` and `/docs/*.md`: the documentation as plain Markdown, for agents and for people without a browser.
#
# The pages are those of the folder `docs` of the repository; a wheel carries them. `/llms.txt` (llmstxt.org) is their
# index: each page with its title and first sentence. A page is read when it is asked for. Its links to files that are
# not served, such as images and the pages of client libraries, lead to the repository.

INDEX: Final = "/llms.txt"
MARKDOWN: Final = "text/markdown; charset=utf-8"
TEXT: Final = "text/plain; charset=utf-8"
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


def markdown_pages() -> Mapping[str, Traversable]:
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


def markdown_index(found: Mapping[str, Traversable]) -> str:
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


def markdown_routes() -> tuple[routing.Route[Any], ...]:
    """The routes of the index and of the pages."""
    found = markdown_pages()

    # Anybody may ask, and it takes reading every page.
    written = caches.LazyValue(lambda: asyncio.to_thread(lambda: markdown_index(found).encode()))

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
