"""Several applications at one address, chosen by the path.

`PathSwitch` decides by the first path segment: paths that the first application does not own go to the second, which
also answers unknown paths. `PathPrefixes` has applications that own everything below a prefix, and every request with
a header field that only their clients send.
"""

from collections.abc import Awaitable, Iterable, Mapping

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


class PathPrefixes:
    """An ASGI callable in front of applications by prefix, such as `/compat/resend`, and of another for the rest."""

    def __init__(
        self,
        applications: Mapping[str, application.AsgiApp],
        other: application.AsgiApp,
        *,
        headers: Mapping[bytes, str] | None = None,
    ) -> None:
        self._applications = [(prefix.encode(), app) for prefix, app in applications.items()]
        self._other = other
        # The prefix that a request with this header field belongs below.
        self._headers = {name: prefix.encode() for name, prefix in (headers or {}).items()}

    def __call__(
        self, scope: application.Scope, receive: application.Receive, send: application.Send
    ) -> Awaitable[None]:
        """One ASGI scope."""
        path = scope["raw_path"] if scope["type"] == "http" else b""
        for prefix, app in self._applications:
            if path.startswith(prefix) and path[len(prefix) :][:1] in {b"", b"/"}:
                return app(scope, receive, send)
        if self._headers and scope["type"] == "http":
            for name, _ in scope["headers"]:
                if name in self._headers:
                    return self({**scope, "raw_path": self._headers[name] + path}, receive, send)
        return self._other(scope, receive, send)


def _segment(path: bytes) -> bytes:
    """The first path segment, as sent: our paths begin with plain letters."""
    return path[1:].partition(b"/")[0]
