"""Sockets for dnspython that refuse an answer before it is parsed: parsing takes the event loop's time.

They have what `dns.asyncquery` and `dns.asyncresolver` use of a backend and of its sockets.
"""

import socket
from typing import Any, Self

import dns.asyncbackend
import dns.exception

from postroad.protocol.dns import answer_limits


class AnswerRefused(dns.exception.FormError):
    """The answer would take too long to parse. As a `FormError`, it is not requested again."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)  # type: ignore[no-untyped-call]


class Backend:
    """Makes the sockets of dnspython's own backend, with a check of what they receive."""

    def __init__(self) -> None:
        self._plain: Any = dns.asyncbackend.get_backend("asyncio")

    async def make_socket(self, family: int, kind: int, *args: object) -> "_Datagrams | _Stream":
        plain = await self._plain.make_socket(family, kind, *args)
        return _Datagrams(plain) if kind == socket.SOCK_DGRAM else _Stream(plain)

    async def sleep(self, seconds: float) -> None:
        """Wait before the next try."""
        await self._plain.sleep(seconds)

    def datagram_connection_required(self) -> bool:
        return bool(self._plain.datagram_connection_required())


class _Socket:
    def __init__(self, plain: Any) -> None:  # noqa: ANN401 - dnspython's, without types
        self._plain = plain
        self.family: int = plain.family

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._plain.close()


class _Datagrams(_Socket):
    _id = b""

    async def sendto(self, wire: bytes, destination: object, seconds: float | None) -> None:
        self._id = wire[:2]
        await self._plain.sendto(wire, destination, seconds)

    async def recvfrom(self, size: int, seconds: float | None) -> tuple[bytes, object]:
        wire, source = await self._plain.recvfrom(size, seconds)
        if wire[:2] != self._id:
            # Perhaps forged: it must neither be parsed nor end the wait. dnspython skips what has no header.
            return b"", source
        _check(wire)
        return wire, source


class _Stream(_Socket):
    """One answer, after the two bytes of its length (RFC 1035 section 4.2.2)."""

    _received = b""

    async def sendall(self, wire: bytes, seconds: float | None) -> None:
        await self._plain.sendall(wire, seconds)

    async def recv(self, size: int, seconds: float | None) -> bytes:
        piece: bytes = await self._plain.recv(size, seconds)
        self._received += piece
        length, wire = int.from_bytes(self._received[:2]), self._received[2:]
        if len(wire) == length:  # dnspython parses it next
            _check(wire)
        return piece


def _check(wire: bytes) -> None:
    refusal = answer_limits.why_refused(wire)
    if refusal is not None:
        raise AnswerRefused(refusal)
