"""One connection of `Client`: a request goes out, a response comes in, all of it before a deadline.

The deadline holds for the whole exchange, and so for a server that sends a byte now and then: before each use, the
socket gets what is left as its timeout. Names are looked up by the system, which has a bound of its own.
"""

from __future__ import annotations

import contextlib
import http
import http.client
import io
import os
import selectors
import socket
import ssl
import time
from typing import TYPE_CHECKING, Final, cast

from postroad_client import configuration, responses

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from typing_extensions import Self


# After these comes another response (RFC 9110 section 15.2), but not after 101; http.client passes over 100 by itself.
INTERIM_STATUSES: Final = range(102, 200)
# The smallest chunks make six bytes of one. http.client has no bound of its own for a chunk of -1 bytes.
MAX_RECEIVED_BYTES: Final = 8 * responses.MAX_BODY_BYTES


class CutShort(OSError):
    """The connection ended before the response did."""


class Wire:
    """A connected socket. It raises a TimeoutError, another OSError, or an HTTPException for what is not HTTP."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._process = os.getpid()
        self._idle_since = 0.0
        self.is_reusable = False

    @classmethod
    def connect(cls, place: configuration.Place, context: ssl.SSLContext | None, deadline: float) -> Self:
        """A connection to the first address that accepts one."""
        sock = _connected(place, deadline)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(_left(deadline))
            return cls(context.wrap_socket(sock, server_hostname=place.host) if context else sock)
        except BaseException:
            sock.close()
            raise

    def exchange(self, request: bytes, *, method: str, deadline: float) -> responses.Response:
        """The response to the request. Afterwards, `is_reusable` tells whether there may be another one."""
        self.is_reusable = was_sent = False
        # A server may refuse a large body without reading all of it. Its response is there although writing failed.
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            self._sock.settimeout(_left(deadline))
            self._sock.sendall(request)
            was_sent = True
        stream = _Stream(self._sock, deadline)
        with http.client.HTTPResponse(cast("socket.socket", stream), method=method) as response:
            response.begin()
            while response.status in INTERIM_STATUSES:
                response.headers = None  # type: ignore[assignment] # as it was before: begin() reads the next head
                response.begin()
            stream.may_end = response.length is None and not response.chunked
            body = response.read(responses.MAX_BODY_BYTES + 1)
            is_http_still = response.status != http.HTTPStatus.SWITCHING_PROTOCOLS
            self.is_reusable = was_sent and is_http_still and response.isclosed() and not response.will_close
            headers = {name.lower(): value.strip() for name, value in response.getheaders()}
            return responses.Response(response.status, headers, body)

    def rest(self) -> None:
        """It is idle from now on."""
        self._idle_since = time.monotonic()

    def is_usable(self, most_idle_seconds: float) -> bool:
        """Whether it has rested for less than that, in this process, and the server has neither spoken nor closed."""
        # After a fork, two processes would read each other's responses.
        if self._process != os.getpid() or time.monotonic() - self._idle_since > most_idle_seconds:
            return False
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return False
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, selectors.EVENT_READ)
            return not selector.select(0)

    def close(self) -> None:
        """Close it without ceremony."""
        self._sock.close()


class _Stream(io.RawIOBase):
    """What http.client reads from. It takes the place of a socket there, and does not close it."""

    def __init__(self, sock: socket.socket, deadline: float) -> None:
        self._sock = sock
        self._deadline = deadline
        self._room = MAX_RECEIVED_BYTES
        self.may_end = False

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._sock.settimeout(_left(self._deadline))
        count = self._sock.recv_into(buffer)
        # http.client would take a head, and some bodies, that end too early for complete ones.
        if not count and not self.may_end:
            raise CutShort("it was closed before the response was complete")
        self._room -= count
        if self._room < 0:
            raise http.client.HTTPException("it has no end")
        return count


def _connected(place: configuration.Place, deadline: float) -> socket.socket:
    found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    while True:
        address = addresses.pop(0)
        # An address that says nothing leaves time for the others.
        seconds = _left(deadline) / (len(addresses) + 1)
        try:
            return socket.create_connection((address, place.port), seconds)
        except OSError:
            if not addresses:
                raise


def _left(deadline: float) -> float:
    """Seconds until then; none is a TimeoutError, as it would be if the socket found out."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
