"""Two doors at one address: the first segment of a path says whose it is.

What the first door has nothing at goes to the second one, which answers for everything else.
"""

from collections.abc import Awaitable, Iterable

from postroad.web import application


class PathSwitch:
    """An ASGI callable before two others."""

    def __init__(self, first: application.AsgiApp, second: application.AsgiApp, *, paths: Iterable[str]) -> None:
        self._first = first
        self._second = second
        self._segments = frozenset(path.split("/", 2)[1].encode() for path in paths)

    def __call__(
        self, scope: application.Scope, receive: application.Receive, send: application.Send
    ) -> Awaitable[None]:
        """One connection scope of ASGI."""
        is_first = scope["type"] != "http" or _segment(scope["raw_path"]) in self._segments
        return (self._first if is_first else self._second)(scope, receive, send)


def _segment(path: bytes) -> bytes:
    """What stands before the second slash, as it was sent: our paths begin with plain letters."""
    return path[1:].partition(b"/")[0]
