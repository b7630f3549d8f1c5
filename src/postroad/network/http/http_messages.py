"""Requests and responses as bytes: llhttp parses requests, and everything has a limit here."""

import enum
import http
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, Protocol

import httptools
import msgspec

from postroad import errors

# The limits of an HTTP listener, each with the reason for its value.
#
# The parser (llhttp) bounds nothing, so everything that a client can make long, many or slow has a limit here. Times
# are compared once a second by the listener's sweep.


class Limits(msgspec.Struct, frozen=True):
    connections: int = 4096
    # An IPv6 network counts as one address. An eighth: an office behind one address has fewer.
    connections_per_address: int = 512
    # The common size of proxies in front of us; a token, a cookie and tracing fields fit many times. Without the URL.
    head_bytes: int = 64 * 1024
    header_fields: int = 100
    # Far more than any URL of ours has: what a client takes for an id is looked up, and is unknown. The parser counts
    # the bytes of a URL with 16 bits.
    url_bytes: int = 64 * 1024 - 1
    # Round trips over the slowest network; the head has its own time after it.
    handshake_seconds: float = 10
    head_seconds: float = 10
    # 32 MiB in two minutes: 2.3 Mbit/s.
    body_seconds: float = 120
    # A client that streams 32 MiB in pieces of 512 bytes is still served.
    body_chunks: int = 65_536
    # What chunks may cost beside their content: sizes, extensions, trailers. Twice what the chunks above need.
    framing_bytes: int = 1024 * 1024
    # What is held of a body that the application has not asked for yet, beside one read of the socket.
    unread_bytes: int = 64 * 1024
    # Longer than the 60 s after which load balancers usually close an idle connection.
    idle_seconds: float = 75
    # A caller that is refused while it sends should be able to finish sending and read why.
    drain_bytes: int = 64 * 1024 * 1024
    drain_seconds: float = 10
    # A caller that does not read its answer for this long is gone.
    write_seconds: float = 60
    pipelined_requests: int = 16


# Checks of a request head after llhttp has parsed it.
#
# What llhttp accepts but RFC 9112 forbids is refused here (sections 2.3, 3.2, 6.1): a message that two parsers read
# differently enables request smuggling. An Upgrade offer is ignored, as RFC 9110 section 7.8 allows.

Headers = list[tuple[bytes, bytes]]

NOT_HTTP: Final = "this is not a valid HTTP/1.1 request"
_VERSIONS: Final = ("1.1", "1.0")
_UPGRADE_FIELDS: Final = (b"connection", b"upgrade", b"http2-settings")


class BadRequest(errors.InvalidRequest):
    pass


def check_request(headers: Headers, *, version: str, limits: Limits) -> bool:
    """Whether the caller waits for `100 Continue`; refuses a head that is too large or ambiguous."""
    if version not in _VERSIONS:
        raise BadRequest(NOT_HTTP)
    size = hosts = 0
    expects_continue = False
    for name, value in headers:
        size += len(name) + len(value)
        if name == b"host":
            hosts += 1
        elif name == b"transfer-encoding":
            if version == "1.0" or value.lower() != b"chunked":
                raise BadRequest("Transfer-Encoding: only chunked is supported, and only in HTTP/1.1")
        elif name == b"expect":
            # RFC 9110 section 10.1.1: nothing that a caller of HTTP/1.0 could wait for.
            expects_continue = version == "1.1" and value.lower() == b"100-continue"
    if size > limits.head_bytes or len(headers) > limits.header_fields:
        raise BadRequest(too_large(limits))
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        raise BadRequest("Host: the header is required exactly once")
    return expects_continue


def too_large(limits: Limits) -> str:
    """Why a head beyond the bounds is refused."""
    return f"too many header fields; at most {limits.header_fields}, with {limits.head_bytes} bytes"


def too_long(url: bytes, limits: Limits) -> errors.PostroadError:
    """Why a URL beyond the bound is refused. A path that long names nothing; a query that long is malformed."""
    why = f"the URL is too long; at most {limits.url_bytes} bytes"
    return BadRequest(why) if b"?" in url[: limits.url_bytes] else errors.NotFound(why)


def target(url: bytes) -> tuple[bytes, bytes]:
    """The path as it was sent, and the query string."""
    try:
        parsed = httptools.parse_url(url)
    except httptools.HttpParserError:
        raise BadRequest(NOT_HTTP) from None
    path: bytes = parsed.path or b""
    if not path or not path.isascii():
        raise BadRequest(NOT_HTTP)
    return path, parsed.query or b""


def without_upgrade(headers: Headers, *, method: bytes, url: bytes, version: str) -> bytes:
    """The head again, without the offer."""
    lines = [b"%s %s HTTP/%s" % (method, url, version.encode())]
    lines += [name + b": " + value for name, value in headers if name not in _UPGRADE_FIELDS]
    if any(name == b"connection" and b"close" in value.lower() for name, value in headers):
        lines.append(b"connection: close")
    return b"\r\n".join([*lines, b"", b""])


class Head(msgspec.Struct, gc=False):
    """The head of a request; `keep_alive` says whether the caller wants to send another after it."""

    method: bytes
    path: bytes
    query: bytes
    version: str
    headers: Headers
    keep_alive: bool
    expects_continue: bool


class ParserCallbacks(Protocol):
    """Called at each step; a request that arrives whole is one call."""

    def request(self, head: Head, content: bytes, *, is_complete: bool) -> None: ...

    def part(self, content: bytes) -> None: ...

    def complete(self) -> None: ...


class RequestParser:
    """The requests of one connection, one after the other."""

    __slots__ = (
        "_callbacks",
        "_chunks",
        "_clock",
        "_content",
        "_head",
        "_headers",
        "_limits",
        "_overhead",
        "_parser",
        "_url",
        "began_at",
        "is_full",
        "stage",
    )

    def __init__(self, callbacks: ParserCallbacks, limits: Limits, *, clock: Callable[[], float]) -> None:
        self._callbacks = callbacks
        self._limits = limits
        self._clock = clock
        self._parser: Any = httptools.HttpRequestParser(self)
        self.stage: Literal["between", "head", "body"] = "between"
        # When the head of the latest request began.
        self.began_at = 0.0
        # Set while no further request is to begin.
        self.is_full = False
        self._url = b""
        self._headers: Headers = []
        # A request whose end may be in the same bytes, and what there is of its body.
        self._head: Head | None = None
        self._content = b""
        # The bytes since the head began, then those around the content of the body.
        self._overhead = 0
        self._chunks = 0

    def feed(self, data: bytes) -> None:
        self._overhead += len(data)
        while data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError as problem:
                self._hand_over()
                raise _bad_request(problem) from None
            else:
                break
        if self.stage != "between":
            self._hand_over()
            if self.stage == "head" and self._overhead - len(self._url) > self._limits.head_bytes:
                raise BadRequest(too_large(self._limits))
            if self.stage == "body" and self._overhead > self._limits.framing_bytes:
                raise BadRequest("body: too much chunk overhead")

    def close(self) -> None:
        """Release the parser: it refers to this object."""
        self._parser = None

    # Called by the parser.

    def on_message_begin(self) -> None:
        if self.is_full:
            raise BadRequest("too many pipelined requests on one connection")
        self.began_at = self._clock()
        self.stage = "head"
        self._url = b""
        self._headers = []
        self._overhead = 0
        self._chunks = 0

    def on_url(self, url: bytes) -> None:
        self._url += url
        if len(self._url) > self._limits.url_bytes:
            raise too_long(self._url, self._limits)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field, or a trailer field, which is ignored (RFC 9110 section 6.5.1)."""
        if self.stage == "head":
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is complete; an ambiguous one is refused."""
        parser = self._parser
        method, version = parser.get_method(), parser.get_http_version()
        expects_continue = check_request(self._headers, version=version, limits=self._limits)
        if parser.should_upgrade():
            if method == b"CONNECT":
                raise BadRequest("CONNECT is not supported")
            return
        path, query = target(self._url)
        # HTTP/1.0 connections are closed: their keep-alive fails with old proxies (RFC 9112 appendix C.2.2).
        keep_alive = version == "1.1" and parser.should_keep_alive()
        self._head = Head(method, path, query, version, self._headers, keep_alive, expects_continue)
        self.stage = "body"
        self._overhead = 0

    def on_chunk_header(self) -> None:
        """The head of a chunk: a chunk costs as much as a field, so their number is bounded too."""
        self._chunks += 1
        if self._chunks > self._limits.body_chunks:
            raise BadRequest(f"body: sent in too many chunks; at most {self._limits.body_chunks}")

    def on_body(self, content: bytes) -> None:
        self._overhead -= len(content)
        if self._head is None:
            self._callbacks.part(content)
        elif self._content:
            self._hand_over()
            self._callbacks.part(content)
        else:
            self._content = content

    def on_message_complete(self) -> None:
        """The request is complete, unless the parser stopped at an offer to upgrade."""
        if self.stage == "body":
            self.stage = "between"
            if self._head is None:
                self._callbacks.complete()
            else:
                head, content = self._head, self._content
                self._head, self._content = None, b""
                self._callbacks.request(head, content, is_complete=True)

    # Internal.

    def _hand_over(self) -> None:
        """Pass on a request whose end has not arrived."""
        if self._head is not None:
            head, content = self._head, self._content
            self._head, self._content = None, b""
            self._callbacks.request(head, content, is_complete=False)

    def _head_without_upgrade(self) -> bytes:
        method, version = self._parser.get_method(), self._parser.get_http_version()
        return without_upgrade(self._headers, method=method, url=self._url, version=version)


def _bad_request(problem: httptools.HttpParserError) -> Exception:
    """Why the parser stopped, in public words; an error in one of our callbacks is raised unchanged."""
    cause = problem.__context__
    if cause is None or isinstance(cause, httptools.HttpParserError):
        return BadRequest(NOT_HTTP)
    return cause if isinstance(cause, Exception) else problem


# The head of a response as bytes, and the framing of its content (RFC 9112 sections 4, 6.3, 7.1 and 9.6).
#
# Framing and connection persistence are decided here alone: by the Content-Length of the application, by the length of
# the content when it is complete, by chunks when it is not, by the end of the connection for HTTP/1.0. An application
# can end the connection with `Connection: close`.

Field = tuple[bytes, bytes]

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in http.HTTPStatus}
_WITHOUT_CONTENT: Final = (204, 304)
_SERVER_FIELDS: Final = frozenset((b"content-length", b"connection", b"transfer-encoding"))


class Framing(enum.Enum):
    """How the caller finds the end of the content."""

    LENGTH = enum.auto()
    CHUNKED = enum.auto()
    CLOSE = enum.auto()
    NOTHING = enum.auto()


# Its bytes, the framing of the content, its length where that is the framing, and whether the connection is kept.
ResponseHead = tuple[bytes, Framing, int, bool]


def head(
    status: int,
    fields: Sequence[Field],
    *,
    date: bytes,
    keep_alive: bool,
    size: int | None,
    method: str = "GET",
    version: str = "1.1",
) -> ResponseHead:
    """The head for a request of this method and version; `size` is that of the whole content, if it is known."""
    length = None
    own = []
    for name, value in fields:
        if name not in _SERVER_FIELDS:
            continue
        if name == b"content-length":
            length = int(value)
        else:
            keep_alive = keep_alive and not (name == b"connection" and b"close" in value.lower())
            fields = [field for field in fields if field[0] != name]
    if method == "HEAD" or status in _WITHOUT_CONTENT:
        framing = Framing.NOTHING
    elif length is not None:
        framing = Framing.LENGTH
    elif size is not None:
        framing, length = Framing.LENGTH, size
        own.append(b"content-length: %d" % size)
    elif version == "1.1":
        framing = Framing.CHUNKED
        own.append(b"transfer-encoding: chunked")
    else:
        framing, keep_alive = Framing.CLOSE, False
    if not keep_alive:
        own.append(b"connection: close")
    lines = [STATUS_LINES.get(status) or b"HTTP/1.1 %d " % status, date, *map(b": ".join, fields), *own, b"", b""]
    content = b"\r\n".join(lines)
    # A line break in a field would allow response splitting.
    if len(content) - len(content.translate(None, b"\r\n\0")) != 2 * (len(lines) - 1):
        raise ValueError("a header field of the response contains a line break or a NUL")
    return content, framing, length or 0, keep_alive


def chunk(content: bytes, *, last: bool) -> bytes:
    """The content as a chunk, if there is any: an empty chunk is the last, which follows when it is asked for."""
    coded = b"%x\r\n%b\r\n" % (len(content), content) if content else b""
    return coded + LAST_CHUNK if last else coded
