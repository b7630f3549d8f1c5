"""The application of the plain listener beside an HTTPS one: pages are redirected, everything else is refused.

A request with a body or a credential is not redirected: its client would go on sending secrets unencrypted, and nobody
would notice. Browsers send no `__Host-` cookie here, so one comes from a program. A link with a token, such as one for
a new password, is redirected: a person has opened it, and it works once.
"""

from collections.abc import Iterable
from typing import Final
from urllib import parse

from postroad import errors
from postroad.network import http_exchange
from postroad.web import application

_REDIRECTED: Final = frozenset({"GET", "HEAD"})
_SECURE_COOKIE: Final = b"__Host-"


class HttpsRedirect:
    """An ASGI callable. `refuse` encodes an error for clients that must change their URL.

    `credentials` are the header fields of credentials, in every API.
    """

    def __init__(self, base_url: str, *, refuse: http_exchange.Refuse, credentials: Iterable[bytes]) -> None:
        parts = parse.urlsplit(base_url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._refuse = refuse
        self._credentials = frozenset(credentials)

    async def __call__(self, scope: application.Scope, receive: application.Receive, send: application.Send) -> None:
        """One request."""
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
