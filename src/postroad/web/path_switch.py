"""Two applications at one address, chosen by the first path segment.

Paths that the first application does not own go to the second, which also answers unknown paths.
"""

from collections.abc import Awaitable, Iterable

from postroad.web import application


class PathSwitch:
    """An ASGI callable in front of two others."""

    def __init__(self, first: application.AsgiApp, second: application.AsgiApp, *, paths: Iterable[str]) -> None:
        self._first = first
        self._second = second
        self._segments = frozenset(path.split("/", 2)[1].encode() for path in paths)

    def __call__(
        self, scope: application.Scope, receive: application.Receive, send: application.Send
    ) -> Awaitable[None]:
        """One ASGI scope."""
        is_first = scope["type"] != "http" or _segment(scope["raw_path"]) in self._segments
        return (self._first if is_first else self._second)(scope, receive, send)


def _segment(path: bytes) -> bytes:
    """The first path segment, as sent: our paths begin with plain letters."""
    return path[1:].partition(b"/")[0]
