"""Length-prefixed frames over a stream between two processes of one host: four octets of length, then the payload.

The peer is one of our processes, so a frame is trusted; its length is bounded all the same. Frames sent in one turn of
the event loop leave in one write.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

LENGTH_BYTES: Final = 4
# A message of 10 MiB, which encoding makes almost three times as large, and everything that is stored beside it.
MAX_BYTES: Final = 64 * 1024 * 1024


SocketEnd = socket.socket


def pair() -> tuple[SocketEnd, SocketEnd]:
    """The two ends of a stream, for two processes."""
    return socket.socketpair()


class FrameProtocol(asyncio.Protocol):
    """One end. `received` gets each frame, `lost` is called once, when the peer has gone or sent an invalid frame."""

    def __init__(self, received: Callable[[memoryview], None], lost: Callable[[], None]) -> None:
        self._received = received
        self._lost = lost
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        start = 0
        with memoryview(self._buffer) as whole:
            while (end := self._end_of_frame(start)) <= len(whole):
                with whole[start + LENGTH_BYTES : end] as frame:
                    self._received(frame)
                start = end
        del self._buffer[:start]

    def _end_of_frame(self, start: int) -> int:
        if len(self._buffer) < start + LENGTH_BYTES:
            return start + LENGTH_BYTES
        length = int.from_bytes(self._buffer[start : start + LENGTH_BYTES], "big")
        if length > MAX_BYTES:
            self.close()
        return start + LENGTH_BYTES + length

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the cause does not matter
        self._transport = None
        self._lost()

    def send(self, frame: bytes) -> None:
        """Send a frame; it is dropped when the peer has gone, which `lost` reports."""
        if self._transport is not None:
            self._transport.writelines((len(frame).to_bytes(LENGTH_BYTES, "big"), frame))

    def close(self) -> None:
        """End the stream, when everything that was sent is on its way."""
        if self._transport is not None:
            self._transport.close()


async def connect(end: SocketEnd, received: Callable[[memoryview], None], lost: Callable[[], None]) -> FrameProtocol:
    _, frames = await asyncio.get_running_loop().create_unix_connection(lambda: FrameProtocol(received, lost), sock=end)
    return frames
