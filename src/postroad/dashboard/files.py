"""Static files: styles, scripts and the icon. Third-party files are in `vendor/`.

The URL of a file contains a digest of its content, so that browsers can cache it forever.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources import abc
from typing import Any, Final

import msgspec

from postroad.concurrency import response_delays
from postroad.services import context
from postroad.web import routing

FOREVER: Final = ("Cache-Control", "public, max-age=31536000, immutable")
DIGEST_CHARACTERS: Final = 12
# How a stylesheet names another file: by its path from the folder of all files.
_REFERENCE: Final = re.compile(rb'url\("([^":]+)"\)')
TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}


class Files(msgspec.Struct, frozen=True):
    """The content of each file by URL, and the URL of each file by name."""

    addresses: Mapping[str, str]
    contents: Mapping[str, tuple[bytes, str]]


def load() -> Files:
    """Load all files."""
    addresses: dict[str, str] = {}
    contents: dict[str, tuple[bytes, str]] = {}
    # Stylesheets come last, because they contain the URLs of fonts.
    found = _found("", resources.files("postroad.dashboard").joinpath("assets"))
    for name, file in sorted(found, key=lambda one: (one[0].endswith(".css"), one[0])):
        content, last = file.read_bytes(), file.name
        if last.endswith(".css"):
            content = _REFERENCE.sub(lambda match: f'url("{addresses[match[1].decode()]}")'.encode(), content)
        digest = hashlib.sha256(content).hexdigest()[:DIGEST_CHARACTERS]
        addresses[name] = f"/assets/{digest}/{last}"
        contents[addresses[name]] = content, TYPES[last.rpartition(".")[2]]
    return Files(addresses, contents)


def _found(path: str, folder: abc.Traversable) -> Iterator[tuple[str, abc.Traversable]]:
    """The files of a folder that are served, by name; licences and manifests are not."""
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _found(f"{path}{entry.name}/", entry)
        elif entry.name.rpartition(".")[2] in TYPES:
            yield f"{path}{entry.name}", entry


def routes(files: Files) -> tuple[routing.Route[context.Context], ...]:
    """A route for each file."""
    return tuple(_route(path, content, kind) for path, (content, kind) in files.contents.items())


def _route(path: str, content: bytes, kind: str) -> routing.Route[Any]:
    answer = routing.Response(200, content, headers=(FOREVER,), content_type=kind)

    async def give(_context: object, _request: routing.Request) -> routing.Response:
        return answer

    return routing.Route(
        method="GET",
        path=path,
        handler=give,
        summary="A file",
        tag="Files",
        permission=None,
        responses={200: bytes},
        pace=response_delays.Pace.FILES,
    )
