"""From the bytes of a connection to requests: httptools (llhttp) parses, and this file bounds what it lets grow.

    between --first byte--> head --head complete--> body --body complete--> between

Each arrow calls a method of `ParserCallbacks`. The parser buffers an unfinished field or trailer, so input is counted,
not only output. An Upgrade offer makes llhttp stop after the head and treat the body as another protocol: the head is
fed again without the offer. Refused input raises the error to answer, after which the parser is unusable.
"""

from typing import Any, Literal, Protocol

import httptools

from postroad.network import http_limits, http_request


class ParserCallbacks(Protocol):
    """Called at each step; `begin` may raise the error to answer."""

    def begin(self) -> None:
        """The first byte of a request was received."""

    def request(
        self,
        headers: http_request.Headers,
        *,
        method: bytes,
        url: bytes,
        version: str,
        keep_alive: bool,
        expects_continue: bool,
    ) -> None:
        """The head is complete; with `expects_continue` the client sends the body after `100 Continue`."""

    def part(self, content: bytes) -> None:
        """A part of the body was received."""

    def complete(self) -> None:
        """The body is complete."""


class RequestParser:
    """The requests of one connection, one after the other."""

    __slots__ = ("_callbacks", "_chunks", "_headers", "_limits", "_overhead", "_parser", "_url", "stage")

    def __init__(self, callbacks: ParserCallbacks, limits: http_limits.Limits) -> None:
        self._callbacks = callbacks
        self._limits = limits
        self._parser: Any = httptools.HttpRequestParser(self)
        self.stage: Literal["between", "head", "body"] = "between"
        self._url = b""
        self._headers: http_request.Headers = []
        # The bytes since the head began, then those around the content of the body.
        self._overhead = 0
        self._chunks = 0

    def feed(self, data: bytes) -> None:
        """Parse more bytes."""
        self._overhead += len(data)
        while data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                self._parser = httptools.HttpRequestParser(self)
            except httptools.HttpParserError as problem:
                raise _bad_request(problem) from None
            else:
                break
        if self.stage == "head" and self._overhead - len(self._url) > self._limits.head_bytes:
            raise http_request.BadRequest(http_request.too_large(self._limits))
        if self.stage == "body" and self._overhead > self._limits.framing_bytes:
            raise http_request.BadRequest("body: too much chunk overhead")

    def close(self) -> None:
        """Release the parser: it refers to this object."""
        self._parser = None

    # Called by the parser.

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        self._callbacks.begin()
        self.stage = "head"
        self._url = b""
        self._headers = []
        self._overhead = 0
        self._chunks = 0

    def on_url(self, url: bytes) -> None:
        """A part of the request target."""
        self._url += url
        if len(self._url) > self._limits.url_bytes:
            raise http_request.too_long(self._url, self._limits)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header field, or a trailer field, which is ignored (RFC 9110 section 6.5.1)."""
        if self.stage == "head":
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is complete; an ambiguous one is refused."""
        parser = self._parser
        method, version = parser.get_method(), parser.get_http_version()
        expects_continue = http_request.check(self._headers, version=version, limits=self._limits)
        if parser.should_upgrade():
            if method == b"CONNECT":
                raise http_request.BadRequest("CONNECT is not supported")
            return
        # HTTP/1.0 connections are closed: their keep-alive fails with old proxies (RFC 9112 appendix C.2.2).
        keep_alive = version == "1.1" and parser.should_keep_alive()
        self._callbacks.request(
            self._headers,
            method=method,
            url=self._url,
            version=version,
            keep_alive=keep_alive,
            expects_continue=expects_continue,
        )
        self.stage = "body"
        self._overhead = 0

    def on_chunk_header(self) -> None:
        """The head of a chunk: a chunk costs as much as a field, so their number is bounded too."""
        self._chunks += 1
        if self._chunks > self._limits.body_chunks:
            raise http_request.BadRequest(f"body: sent in too many chunks; at most {self._limits.body_chunks}")

    def on_body(self, content: bytes) -> None:
        """A part of a body."""
        self._overhead -= len(content)
        self._callbacks.part(content)

    def on_message_complete(self) -> None:
        """The request is complete, unless the parser stopped at an offer to upgrade."""
        if self.stage == "body":
            self.stage = "between"
            self._callbacks.complete()

    # Internal.

    def _head_without_upgrade(self) -> bytes:
        method, version = self._parser.get_method(), self._parser.get_http_version()
        return http_request.without_upgrade(self._headers, method=method, url=self._url, version=version)


def _bad_request(problem: httptools.HttpParserError) -> Exception:
    """Why the parser stopped, in public words; an error in one of our callbacks is raised unchanged."""
    cause = problem.__context__
    if cause is None or isinstance(cause, httptools.HttpParserError):
        return http_request.BadRequest(http_request.NOT_HTTP)
    return cause if isinstance(cause, Exception) else problem
