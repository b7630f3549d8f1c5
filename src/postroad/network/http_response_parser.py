"""From the bytes of a connection to the response of one request: httptools (llhttp) parses, everything is bounded here.

    begin --interim responses, skipped--> head --> body --> complete | truncated at the wanted size

The peer decides what it sends, so everything but the body (heads, interim ones too, and chunk framing) shares one small
budget, and the body is kept up to the size that the caller wants. Nothing is decoded. A response that ends with the
connection (RFC 9112 section 6.3) is marked, because an attacker who cuts the connection can shorten it. Requests are
never HEAD or CONNECT, whose responses are framed differently.
"""

from collections.abc import Mapping
from typing import Any, Final

import httptools
import msgspec

# The limit of common servers for requests; a valid response needs far less.
OVERHEAD_BYTES: Final = 16 * 1024
HEADER_FIELDS: Final = 100
_FIRST_STATUS: Final = 100
_FIRST_FINAL_STATUS: Final = 200
_VERSIONS: Final = frozenset({"1.0", "1.1"})
# llhttp would also read RTSP and ICE.
_FIRST_OCTET: Final = ord("H")


class HttpClientError(Exception):
    """There is no usable response: a code that is one of three words, and a sentence for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Response(msgspec.Struct, frozen=True):
    """A final response. Names of fields are in lower case, and of several with one name the last counts."""

    status: int
    headers: Mapping[bytes, bytes]
    body: bytes
    is_truncated: bool = False
    ends_with_connection: bool = False


class _StopParsing(Exception):
    """The parser need not go on: the response is complete, or as long as it may be."""


class ResponseParser:
    """The responses on one connection, one after the other; after an `HttpClientError` it is unusable."""

    def __init__(self) -> None:
        self._parser: Any = httptools.HttpResponseParser(self)
        self.begin(max_body=0)

    def begin(self, *, max_body: int) -> None:
        """A request was sent: the next bytes are its response."""
        self._max_body = max_body
        self._received = 0
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._fields = 0
        self._has_length = False
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._is_truncated = False
        self._is_complete = False
        self._has_extra_data = False
        self._keeps_alive = False

    @property
    def is_empty(self) -> bool:
        """Nothing has been received yet."""
        return self._received == 0

    @property
    def is_reusable(self) -> bool:
        """The response ended where it said, and nothing follows but empty lines, which the parser passes over."""
        return self._keeps_alive and self._is_complete and not self._has_extra_data

    def feed(self, data: bytes) -> Response | None:
        """Parse more bytes; the response, once it is complete."""
        if not self._received and data[0] != _FIRST_OCTET:
            raise _not_http()
        self._received += len(data)
        self._parse(data)
        overhead = self._received - self._body_bytes
        # Where the parser stopped within a read, how much of the rest is body is unknown.
        if overhead > OVERHEAD_BYTES and not (self._is_truncated or self._has_extra_data):
            raise HttpClientError("invalid_response", "the response header is too long")
        return self._response() if self._is_complete or self._is_truncated else None

    def end(self) -> Response | HttpClientError:
        """The connection has ended, and so may have a response that states no length."""
        if not self._status or self._has_length:
            return HttpClientError("invalid_response", "the response ends before it is complete")
        return self._response(ends_with_connection=True)

    def close(self) -> None:
        """Release the parser: it refers to this object."""
        self._parser = None

    # Called by the parser.

    def on_message_begin(self) -> None:
        """A response begins; a second one was not requested."""
        if self._is_complete:
            self._has_extra_data = True
            raise _StopParsing

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head, or a trailer field, which is ignored (RFC 9110 section 6.5.1)."""
        self._fields += 1
        if self._fields > HEADER_FIELDS:
            raise HttpClientError("invalid_response", "the response has too many header fields")
        if not self._status:
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """A head is complete; that of an interim response (RFC 9110 section 15.2) is discarded."""
        status = self._parser.get_status_code()
        if status < _FIRST_STATUS or self._parser.get_http_version() not in _VERSIONS:
            raise _not_http()
        if status < _FIRST_FINAL_STATUS:
            self._headers.clear()
            return
        self._status = status
        codings = self._headers.get(b"transfer-encoding", b"").lower()
        self._has_length = b"content-length" in self._headers or codings.endswith(b"chunked")

    def on_body(self, content: bytes) -> None:
        """A part of the body."""
        self._body.append(content)
        self._body_bytes += len(content)
        if self._body_bytes > self._max_body:
            self._is_truncated = True
            raise _StopParsing

    def on_message_complete(self) -> None:
        """A response is complete, final or not."""
        if self._status:
            self._is_complete = True
            self._keeps_alive = self._parser.should_keep_alive()

    # Internal.

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # 101, which was not requested
            raise _not_http() from None
        except httptools.HttpParserError as problem:
            cause = problem.__context__
            if self._is_complete:
                self._has_extra_data = True
            elif cause is None:
                raise _not_http() from None
            elif not isinstance(cause, _StopParsing):
                raise cause from None

    def _response(self, *, ends_with_connection: bool = False) -> Response:
        body = b"".join(self._body)[: self._max_body]
        return Response(self._status, self._headers, body, self._is_truncated, ends_with_connection)


def _not_http() -> HttpClientError:
    return HttpClientError("invalid_response", "the response is not HTTP")
