"""Requests on one connection, from any octets: what the parser and its bounds make of them, without an application.

Holds: nothing but a refusal is raised; the same octets are the same requests however they are cut; a body is as long
as its Content-Length says; no request has both ways to say how long it is, nor a field with a control character.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from postroad import errors
from postroad.network.http import http_messages
from tests.fuzz import target

# Small, so that a short input can come to every bound.
LIMITS: Final = http_messages.Limits(header_fields=8, url_bytes=100, body_chunks=5)
_CONTROLS: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(slots=True)
class Request:
    """One that was read, as far as it came."""

    head: http_messages.Head
    body: bytes
    is_complete: bool


@dataclass(slots=True)
class Taker:
    """Writes down what the reader tells."""

    requests: list[Request] = field(default_factory=list)

    def request(self, head: http_messages.Head, content: bytes, *, is_complete: bool) -> None:
        assert all(request.is_complete for request in self.requests)
        self.requests.append(Request(head, content, is_complete))

    def part(self, content: bytes) -> None:
        self.requests[-1].body += content

    def complete(self) -> None:
        self.requests[-1].is_complete = True


def check(data: bytes) -> None:
    whole = _read([data])
    assert _read(target.pieces(data)) == whole
    requests, _ = whole
    for request in requests:
        _check_request(request)
    assert all(request.is_complete for request in requests[:-1])


def _read(pieces: list[bytes]) -> tuple[list[Request], bool]:
    taker = Taker()
    reader = http_messages.RequestParser(taker, LIMITS, clock=lambda: 0.0)
    try:
        for piece in pieces:
            reader.feed(piece)
    except (errors.InvalidRequest, errors.NotFound) as error:
        _check_error_text(error.message)
        return taker.requests, True
    finally:
        reader.close()
    return taker.requests, False


def _check_error_text(refusal: str) -> None:
    assert target.is_sayable(refusal, most=200)


def _check_request(request: Request) -> None:
    head = request.head
    names = [name for name, _ in head.headers]
    assert len(names) <= LIMITS.header_fields
    assert head.path
    assert len(head.path + head.query) <= LIMITS.url_bytes
    assert not any(_CONTROLS.search(value) for _, value in head.headers)
    sizes = [value for name, value in head.headers if name == b"content-length"]
    assert len(sizes) <= 1
    assert not (sizes and b"transfer-encoding" in names)
    if sizes and request.is_complete:
        assert len(request.body) == int(sizes[0])
    if not sizes and b"transfer-encoding" not in names:
        assert not request.body


TARGET: Final = target.Target(
    name="http",
    open=target.plain(check),
    watches=("network/http/http_messages.py",),
    seeds=(
        b"POST /emails?x=%C3%BC HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, Settings\r\nHTTP2-Settings: x\r\n\r\n",
        (
            b"POST / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabc"
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
        ),
        b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET http://a/b HTTP/1.1\r\nHost: a\r\nX: a\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
    ),
    steps=(3_000, 60),
)
