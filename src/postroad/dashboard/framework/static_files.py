"""Static files: styles, scripts, fonts and the icon. Third-party files are in `assets/vendor`.

All pages share one stylesheet and one script, which are put together at startup. The URL of a file contains a digest of
its content, so that browsers can cache it forever.
"""

import gzip
import hashlib
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources import abc
from typing import Any, Final

import msgspec

from postroad import context
from postroad.concurrency import fairness
from postroad.web import routing

FOREVER: Final = ("Cache-Control", "public, max-age=31536000, immutable")
DIGEST_CHARACTERS: Final = 12
# The one stylesheet and the one script of all pages, and what they are made of, in the order in which it takes effect.
STYLE: Final = "dashboard.css"
STYLES: Final = ("colors.css", "base.css", "layout.css", "components.css", "palette.css", "vendor/uplot/uPlot.min.css")
# These are for pages that name them in their block `styles`.
PAGE_STYLES: Final = (
    "snippets",
    "lists",
    "connect",
    "domains",
    "message",
    "operator",
    "overview",
    "team",
    "template",
    "webhook",
    "welcome",
)
SCRIPT: Final = "dashboard.js"
SCRIPTS: Final = (
    "live.js",
    "app.js",
    "forms.js",
    "palette.js",
    "keyboard.js",
    "passkeys.js",
    "filters.js",
    "peek.js",
    "message.js",
    "suppressions.js",
    "charts.js",
    "tabs.js",
    "template_editor.js",
    "template.js",
)
# Comments that begin a line are for readers of the code, not for browsers.
_COMMENT: Final = re.compile(rb"^ */\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)
# How a stylesheet names another file: by its path from the folder of all files.
_REFERENCE: Final = re.compile(rb'url\("([^":]+)"\)')
FILE_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}
# These contain compressed data.
_COMPRESSED_TYPES: Final = frozenset({"font/woff2"})


class StaticFiles(msgspec.Struct, frozen=True):
    """The content of each file by URL, and the URL of each file by name."""

    addresses: Mapping[str, str]
    contents: Mapping[str, tuple[bytes, str]]


def load() -> StaticFiles:
    found = dict(_found("", resources.files("postroad.dashboard").joinpath("assets")))
    script = b"\n".join(map(found.pop, SCRIPTS))
    style = b"\n".join((*map(found.pop, STYLES), *(_nested(name, found.pop(f"{name}.css")) for name in PAGE_STYLES)))
    found |= {SCRIPT: _COMMENT.sub(b"", script), STYLE: _COMMENT.sub(b"", style)}
    addresses: dict[str, str] = {}
    contents: dict[str, tuple[bytes, str]] = {}
    # Stylesheets come last, because they contain the URLs of fonts.
    for name, content in sorted(found.items(), key=lambda asset: (asset[0].endswith(".css"), asset[0])):
        served = content
        if name.endswith(".css"):
            served = _REFERENCE.sub(lambda match: f'url("{addresses[match[1].decode()]}")'.encode(), content)
        digest = hashlib.sha256(served).hexdigest()[:DIGEST_CHARACTERS]
        addresses[name] = f"/assets/{digest}/{name.rpartition('/')[2]}"
        contents[addresses[name]] = served, FILE_TYPES[name.rpartition(".")[2]]
    return StaticFiles(addresses, contents)


def _nested(name: str, rules: bytes) -> bytes:
    """The rules, for pages that name them; `:where` does not make them more specific (CSS nesting module level 1)."""
    return b':where([data-styles~="%s"]) {\n%s}' % (name.encode(), rules)


def _found(path: str, folder: abc.Traversable) -> Iterator[tuple[str, bytes]]:
    """The files of a folder that are served, by name; licences and manifests are not."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _found(f"{path}{entry.name}/", entry)
        elif entry.name.rpartition(".")[2] in FILE_TYPES:
            yield f"{path}{entry.name}", entry.read_bytes()


def routes(files: StaticFiles) -> tuple[routing.Route[context.Context], ...]:
    return tuple(_route(path, content, kind) for path, (content, kind) in files.contents.items())


def _route(path: str, content: bytes, kind: str) -> routing.Route[Any]:
    plain = packed = routing.Response(200, content, headers=(FOREVER,), content_type=kind)
    if kind not in _COMPRESSED_TYPES:
        headers = FOREVER, routing.VARIES_BY_ENCODING
        plain = routing.Response(200, content, headers=headers, content_type=kind)
        packed = routing.Response(
            200, gzip.compress(content, mtime=0), headers=(*headers, routing.GZIP), content_type=kind
        )

    async def give(_context: object, request: routing.Request) -> routing.Response:
        return packed if request.headers.accepts_gzip else plain

    return routing.Route(
        method="GET",
        path=path,
        handler=give,
        summary="A file",
        tag="Files",
        permission=None,
        responses={200: bytes},
        pace=fairness.Pace.FILES,
    )
