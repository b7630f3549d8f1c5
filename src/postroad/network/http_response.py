"""The head of a response as bytes, and the framing of its content (RFC 9112 sections 4, 6.3, 7.1 and 9.6).

Framing and connection persistence are decided here alone: by the Content-Length of the application, by the length of
the content when it is complete, by chunks when it is not, by the end of the connection for HTTP/1.0. An application
can end the connection with `Connection: close`.
"""

import enum
import http
from collections.abc import Sequence
from typing import Final

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


# A head, the framing of the content, its length where that is the framing, and whether the connection is kept.
Head = tuple[bytes, Framing, int, bool]


def head(
    status: int,
    fields: Sequence[Field],
    *,
    date: bytes,
    keep_alive: bool,
    size: int | None,
    method: str = "GET",
    version: str = "1.1",
) -> Head:
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
    return _joined(lines), framing, length or 0, keep_alive


def chunk(content: bytes, *, last: bool) -> bytes:
    """The content as a chunk, if there is any: an empty chunk is the last, which follows when it is asked for."""
    coded = b"%x\r\n%b\r\n" % (len(content), content) if content else b""
    return coded + LAST_CHUNK if last else coded


def _joined(lines: list[bytes]) -> bytes:
    content = b"\r\n".join(lines)
    # A line break in a field would allow response splitting.
    if len(content) - len(content.translate(None, b"\r\n\0")) != 2 * (len(lines) - 1):
        raise ValueError("a header field of the response contains a line break or a NUL")
    return content
