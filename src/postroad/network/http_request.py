"""Checks of a request head after llhttp has parsed it.

What llhttp accepts but RFC 9112 forbids is refused here (sections 2.3, 3.2, 6.1): a message that two parsers read
differently enables request smuggling. An Upgrade offer is ignored, as RFC 9110 section 7.8 allows.
"""

from typing import Final
from urllib import parse

import httptools

from postroad import errors
from postroad.network import http_limits

Headers = list[tuple[bytes, bytes]]

NOT_HTTP: Final = "this is not a valid HTTP/1.1 request"
_VERSIONS: Final = ("1.1", "1.0")
_UPGRADE_FIELDS: Final = (b"connection", b"upgrade", b"http2-settings")


class BadRequest(errors.InvalidRequest):
    """The input is not a valid request."""


def check(headers: Headers, *, version: str, limits: http_limits.Limits) -> bool:
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


def too_large(limits: http_limits.Limits) -> str:
    """Why a head beyond the bounds is refused."""
    return f"too many header fields; at most {limits.header_fields}, with {limits.head_bytes} bytes"


def too_long(url: bytes, limits: http_limits.Limits) -> errors.PostroadError:
    """Why a URL beyond the bound is refused. A path that long names nothing; a query that long is malformed."""
    why = f"the URL is too long; at most {limits.url_bytes} bytes"
    return BadRequest(why) if b"?" in url[: limits.url_bytes] else errors.NotFound(why)


def target(url: bytes) -> tuple[str, bytes, bytes]:
    """The decoded path, the path as it was sent, and the query string."""
    try:
        parsed = httptools.parse_url(url)
        path = (parsed.path or b"").decode("ascii")
    except (httptools.HttpParserError, UnicodeDecodeError):
        raise BadRequest(NOT_HTTP) from None
    if not path:
        raise BadRequest(NOT_HTTP)
    return parse.unquote(path) if "%" in path else path, parsed.path, parsed.query or b""


def without_upgrade(headers: Headers, *, method: bytes, url: bytes, version: str) -> bytes:
    """The head again, without the offer."""
    lines = [b"%s %s HTTP/%s" % (method, url, version.encode())]
    lines += [name + b": " + value for name, value in headers if name not in _UPGRADE_FIELDS]
    if any(name == b"connection" and b"close" in value.lower() for name, value in headers):
        lines.append(b"connection: close")
    return b"\r\n".join([*lines, b"", b""])
