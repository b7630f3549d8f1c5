"""Several applications at one address: the path of a request, or a header field, decides which of them answers."""

from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final
from urllib import parse

from postroad import errors
from postroad.network.http import http_server


class PathSwitch:
    """Paths that the first application does not own go to the second, which also answers unknown paths."""

    def __init__(
        self, first: http_server.Application, second: http_server.Application, *, paths: Iterable[str]
    ) -> None:
        self._first = first
        self._second = second
        self._segments = frozenset(path.split("/", 2)[1].encode() for path in paths)

    def __call__(self, request: http_server.Request) -> Coroutine[Any, Any, None]:
        # Our paths begin with plain letters.
        is_first = request.raw_path[1:].partition(b"/")[0] in self._segments
        return (self._first if is_first else self._second)(request)


class PathPrefixes:
    """Applications that own everything below a prefix, such as `/compat/resend`, and another for the rest.

    An application also gets every request with a header field that only its clients send.
    """

    def __init__(
        self,
        applications: Mapping[str, http_server.Application],
        other: http_server.Application,
        *,
        headers: Mapping[bytes, str] | None = None,
    ) -> None:
        self._applications = [(prefix.encode(), app) for prefix, app in applications.items()]
        self._other = other
        # The prefix that a request with this header field belongs below.
        self._headers = {name: prefix.encode() for name, prefix in (headers or {}).items()}

    def __call__(self, request: http_server.Request) -> Coroutine[Any, Any, None]:
        path = request.raw_path
        for prefix, app in self._applications:
            if path.startswith(prefix) and path[len(prefix) :][:1] in {b"", b"/"}:
                return app(request)
        if self._headers:
            for name, _ in request.headers:
                if name in self._headers:
                    request.raw_path = self._headers[name] + path
                    return self(request)
        return self._other(request)


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

    async def __call__(self, request: http_server.Request) -> None:
        has_secret = any(
            name in self._credentials or (name == b"cookie" and _SECURE_COOKIE in value)
            for name, value in request.headers
        )
        if request.method in _REDIRECTED and not has_secret:
            query = b"?" + request.query if request.query else b""
            # `GET *` has no path, and would become a part of the host name.
            path = request.raw_path if request.raw_path.startswith(b"/") else b"/"
            request.respond(308, [(b"location", self._origin.encode() + path + query)], b"")
        else:
            problem = f"Use {self._origin}. Replace this credential: it was sent unencrypted."
            request.respond(*self._refuse(errors.InvalidRequest(problem)))
