"""Several applications at one address: the path of a request, or a header field, decides which of them answers."""

from collections.abc import Awaitable, Iterable, Mapping
from typing import Final
from urllib import parse

from postroad import errors
from postroad.network.http import http_server
from postroad.web import application


class PathSwitch:
    """Paths that the first application does not own go to the second, which also answers unknown paths."""

    def __init__(self, first: application.AsgiApp, second: application.AsgiApp, *, paths: Iterable[str]) -> None:
        self._first = first
        self._second = second
        self._segments = frozenset(path.split("/", 2)[1].encode() for path in paths)

    def __call__(
        self, scope: application.Scope, receive: application.Receive, send: application.Send
    ) -> Awaitable[None]:
        # Our paths begin with plain letters.
        is_first = scope["raw_path"][1:].partition(b"/")[0] in self._segments
        return (self._first if is_first else self._second)(scope, receive, send)


class PathPrefixes:
    """Applications that own everything below a prefix, such as `/compat/resend`, and another for the rest.

    An application also gets every request with a header field that only its clients send.
    """

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
        path = scope["raw_path"]
        for prefix, app in self._applications:
            if path.startswith(prefix) and path[len(prefix) :][:1] in {b"", b"/"}:
                return app(scope, receive, send)
        if self._headers:
            for name, _ in scope["headers"]:
                if name in self._headers:
                    # In place: what the application notes in it is for the listener too.
                    scope["raw_path"] = self._headers[name] + path
                    return self(scope, receive, send)
        return self._other(scope, receive, send)


_REDIRECTED: Final = frozenset({"GET", "HEAD"})
_SECURE_COOKIE: Final = b"__Host-"


class HttpsRedirect:
    """The application of the plain listener beside an HTTPS one: pages are redirected, everything else is refused.

    A request with a body or a credential is not redirected: its client would go on sending secrets unencrypted, and
    nobody would notice. Browsers send no `__Host-` cookie here, so one comes from a program. A link with a token, such
    as one for a new password, is redirected: a person has opened it, and it works once.

    `refuse` encodes an error for clients that must change their URL. `credentials` are the header fields of
    credentials, in every API.
    """

    def __init__(self, base_url: str, *, refuse: http_server.Refuse, credentials: Iterable[bytes]) -> None:
        parts = parse.urlsplit(base_url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._refuse = refuse
        self._credentials = frozenset(credentials)

    async def __call__(self, scope: application.Scope, receive: application.Receive, send: application.Send) -> None:
        del receive
        has_secret = any(
            name in self._credentials or (name == b"cookie" and _SECURE_COOKIE in value)
            for name, value in scope["headers"]
        )
        if scope["method"] in _REDIRECTED and not has_secret:
            query = b"?" + scope["query_string"] if scope["query_string"] else b""
            # `GET *` has no path, and would become a part of the host name.
            path = scope["raw_path"] if scope["raw_path"].startswith(b"/") else b"/"
            status, fields, content = 308, [(b"location", self._origin.encode() + path + query)], b""
        else:
            problem = f"Use {self._origin}. Replace this credential: it was sent unencrypted."
            status, fields, content = self._refuse(errors.InvalidRequest(problem))
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": content})
