"""A client of the HTTP API for short commands: one request at a time, without an event loop.

Commands have to start fast, and an event loop with its own HTTP client costs more than a request. Certificates are
always verified. Redirects are never followed: the API key is for this host alone. A request over a rate limit had no
effect: it is repeated when its Retry-After has passed, if that is soon. The response, each wait and the whole time are
bounded, and what a server sends is only trusted to be JSON.
"""

import contextlib
import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib import parse

# For each read and write.
TIMEOUT_SECONDS: Final = 30.0
# For a request and its response, however slowly they come: the largest message at half a megabit a second.
MAX_SECONDS: Final = 300.0
# The largest response that commands ask for is a page of a hundred messages or templates.
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
# For all the waits of a request that is over a rate limit. A longer limit, such as one of a month, is an error at once.
MAX_RATE_LIMITED_SECONDS: Final = 30
OK: Final = range(200, 300)
RATE_LIMITED: Final = 429
REDIRECT: Final = range(300, 400)


class ServerError(Exception):
    """No usable response; the message says why. `status` is that of the response, or None without one."""

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def check_url(text: str) -> str:
    """The base URL of a server, without a slash at its end. Raises ValueError."""
    try:
        parts = parse.urlsplit(text.strip())
        port = parts.port
    except ValueError as problem:
        raise ValueError(f"not a valid URL: {problem}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must start with https:// and name a host, such as https://mail.example.com")
    if parts.username is not None or parts.query or parts.fragment:
        raise ValueError("must have no user, query or fragment")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def is_unprotected(url: str) -> bool:
    """Whether what is sent to this URL crosses a network without TLS."""
    parts = parse.urlsplit(url)
    if parts.scheme == "https" or parts.hostname == "localhost":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return True


class Response(NamedTuple):
    status: int
    body: bytes
    retry_after: int | None  # seconds


class Client:
    """Calls the API of one server with one API key, over one kept connection."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        user_agent: str,
        timeout: float = TIMEOUT_SECONDS,
        max_seconds: float = MAX_SECONDS,
    ) -> None:
        self.url = url
        self.key = key
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": user_agent, "Accept": "application/json"}
        self._timeout = timeout
        self._max_seconds = max_seconds
        self._base = parse.urlsplit(url)
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, /, **query: object) -> dict[str, Any]:
        """The response to a GET; query parameters that are None are left out."""
        given = {name: value for name, value in query.items() if value is not None}
        return self.call("GET", f"{path}?{parse.urlencode(given)}" if given else path)

    def call(
        self, method: str, path: str, body: object = None, *, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """The JSON object of a response; an empty one without content. Raises ServerError."""
        encoded = None if body is None else json.dumps(body).encode()
        fields = {**self._headers, **(headers or {})}
        if encoded is not None:
            fields["Content-Type"] = "application/json"
        response = self._exchange(method, path, encoded, fields)
        left = MAX_RATE_LIMITED_SECONDS
        while response.status == RATE_LIMITED and response.retry_after is not None and response.retry_after <= left:
            left -= response.retry_after
            time.sleep(response.retry_after)
            response = self._exchange(method, path, encoded, fields)
        document = _object(response.body)
        if response.status in OK and document is not None:
            return document
        raise self._refusal(response.status, document)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Response:
        is_kept = self._connection is not None
        try:
            return self._send(method, path, body, headers)
        except ConnectionError as problem:
            self.close()
            # A server closes idle connections. Only a request without an effect is repeated.
            if not is_kept or method != "GET":
                raise self._unreachable(problem) from None
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise self._unreachable(problem) from None
        try:
            return self._send(method, path, body, headers)
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            raise self._unreachable(problem) from None

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Response:
        if self._connection is None:
            self._connection = connect(self._base, timeout=self._timeout)
        if self._connection.sock is None:
            self._connection.connect()
        with _bounded(self._connection.sock, seconds=self._max_seconds):
            self._connection.request(method, f"{self._base.path}{path}", body, headers)
            response = self._connection.getresponse()
            raw = response.read(MAX_BODY_BYTES + 1)
        if len(raw) > MAX_BODY_BYTES:
            self.close()
            raise ServerError(f"{self.url}: the response is larger than {MAX_BODY_BYTES // 1024**2} MiB")
        return Response(response.status, raw, _seconds(response.getheader("Retry-After")))

    def _unreachable(self, problem: Exception) -> ServerError:
        reason = getattr(problem, "verify_message", "") or getattr(problem, "strerror", "") or str(problem)
        return ServerError(f"{self.url} cannot be reached: {reason or type(problem).__name__}")

    def _refusal(self, status: int, document: dict[str, Any] | None) -> ServerError:
        if status in REDIRECT:
            return ServerError(f"{self.url} redirects elsewhere ({status}); use the final URL", status=status)
        message = document.get("error") if document is not None else None
        if not isinstance(message, str):
            return ServerError(f"{self.url} is not the API of a Postroad server (status {status})", status=status)
        return ServerError(message, status=status)


def connect(base: parse.SplitResult, *, timeout: float) -> http.client.HTTPConnection:
    """A connection to the host of a URL, which opens with its first request; with TLS for `https`."""
    if base.scheme == "https":
        return http.client.HTTPSConnection(base.hostname or "", base.port, timeout=timeout, context=tls_context())
    return http.client.HTTPConnection(base.hostname or "", base.port, timeout=timeout)


@contextlib.contextmanager
def _bounded(connected: socket.socket, *, seconds: float) -> Iterator[None]:
    """Raise TimeoutError for what takes longer. The timeout of a socket is for each read: one byte begins it again."""
    over = threading.Event()

    def end() -> None:
        over.set()
        with contextlib.suppress(OSError):  # closed already
            # Not the method of a TLS socket, which another thread must not call; both ends see the end of the stream.
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException):
        if not over.is_set():
            raise
    finally:
        timer.cancel()
        timer.join()
    if over.is_set():
        raise TimeoutError(f"no complete response within {seconds:g} seconds")


def tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _seconds(text: str | None) -> int | None:
    """At least one second; None if it is a date, or none is given. Nine digits are too long a wait already."""
    return max(1, int(text[:9])) if text is not None and text.isascii() and text.isdigit() else None


def _object(raw: bytes) -> dict[str, Any] | None:
    """The JSON object that these bytes are; None if they are none."""
    try:
        found = json.loads(raw) if raw else {}
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
