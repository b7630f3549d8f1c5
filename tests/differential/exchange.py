"""A client over raw sockets: it sends the bytes of a conversation, and keeps all that comes back."""

import contextlib
import re
import socket
import time
from collections.abc import Callable
from typing import Final

from tests.differential import generator, services

# Longer than a service that is slowed down on purpose takes for an answer.
TIMEOUT_SECONDS: Final = 60.0
# A server that has said that it closes does so at once.
CLOSE_SECONDS: Final = 10.0
# So that the server gets the parts one by one, mostly.
SEGMENT_SECONDS: Final = 0.005
_PLACEHOLDER: Final = re.compile(rb"@@([a-z0-9]+):([a-z0-9]+)@@")
_MESSAGE: Final = re.compile(rb"em_[0-9a-f]{28}")
_UNKNOWN: Final = b"em_" + b"0" * 28
OPEN, CLOSED, SILENT = b"\n(open)", b"\n(closed)", b"\n(no response in time)"


class Client:
    """The connections to one service, and the ids that it gave to messages."""

    def __init__(self, service: services.Service) -> None:
        self._service = service
        self._http: Connection | None = None
        # The first message id in the response to each conversation.
        self._messages: dict[int, bytes] = {}

    def hold(self, number: int, conversation: generator.Conversation) -> bytes:
        """Say it, and return everything that was answered."""
        segments = [_PLACEHOLDER.sub(self._value, segment) for segment in conversation.segments]
        response = self._hold_smtp(segments) if conversation.is_smtp else self._hold_http(conversation, segments)
        if found := _MESSAGE.search(response):
            self._messages[number] = found[0]
        return response

    def close(self) -> None:
        """Hang up."""
        if self._http is not None:
            self._http.socket.close()
            self._http = None

    def _value(self, found: re.Match[bytes]) -> bytes:
        kind, name = found[1].decode(), found[2].decode()
        if kind == "message":
            return self._messages.get(int(name), _UNKNOWN)
        return self._service.secrets[f"{kind}:{name}"]

    def _hold_http(self, conversation: generator.Conversation, segments: list[bytes]) -> bytes:
        if conversation.is_new_connection:
            self.close()
        connection = self._http or Connection(self._service.http)
        self._http = connection
        connection.send(segments)
        for method in conversation.methods:
            if not connection.read_response(is_head=method == "HEAD"):
                self.close()
                return connection.taken()
        if conversation.closes:
            connection.read_to_end(CLOSE_SECONDS)
            self.close()
        return connection.taken()

    def _hold_smtp(self, segments: list[bytes]) -> bytes:
        with contextlib.closing(Connection(self._service.smtp)) as connection:
            connection.send(segments)
            connection.read_to_end(TIMEOUT_SECONDS)
            return connection.taken()


class Connection:
    """A socket, what was read from it, and what of that is not taken yet."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.socket = socket.create_connection(address, TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = b""
        self._taken = b""

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def send(self, segments: list[bytes]) -> None:
        """Send, segment by segment. A server that has refused may have hung up already."""
        with contextlib.suppress(OSError):
            for number, segment in enumerate(segments):
                if number:
                    time.sleep(SEGMENT_SECONDS)
                self.socket.sendall(segment)

    def taken(self) -> bytes:
        """All that was read since the last call."""
        taken, self._taken = self._taken, b""
        return taken

    def read_response(self, *, is_head: bool) -> bool:
        """Read an HTTP response; whether another one can follow."""
        while True:
            if not self._read_until(lambda: b"\r\n\r\n" in self._buffer):
                return False
            head, _, _ = self._buffer.partition(b"\r\n\r\n")
            self._take(len(head) + 4)
            if not head.startswith(b"HTTP/1.1 1"):
                break
        fields = head.lower()
        if length := re.search(rb"\r\ncontent-length: *(\d+)", fields):
            size = 0 if is_head else int(length[1])
            if not self._read_until(lambda: len(self._buffer) >= size):
                return False
            self._take(size)
        elif b"\r\ntransfer-encoding: chunked" in fields and not is_head:
            if not self._read_until(lambda: b"0\r\n\r\n" in self._buffer):
                return False
            self._take(self._buffer.index(b"0\r\n\r\n") + 5)
        if b"\r\nconnection: close" in fields:
            self.read_to_end(CLOSE_SECONDS)
            return False
        return True

    def read_to_end(self, seconds: float) -> None:
        """Read until the server closes, and note when it does not."""
        self.socket.settimeout(seconds)
        while (ended := self._read()) is None:
            pass
        self._take(len(self._buffer))
        self._taken += ended

    def _read_until(self, complete: Callable[[], bool]) -> bool:
        while not complete():
            if (ended := self._read()) is not None:
                self._take(len(self._buffer))
                self._taken += ended
                return False
        return True

    def _read(self) -> bytes | None:
        try:
            read = self.socket.recv(256 * 1024)
        except TimeoutError:
            return SILENT
        except OSError:
            return CLOSED
        self._buffer += read
        return None if read else CLOSED

    def _take(self, size: int) -> None:
        self._taken += self._buffer[:size]
        self._buffer = self._buffer[size:]


def outcomes(response: bytes) -> list[str]:
    """The statuses of HTTP responses, or of the last replies of an SMTP session."""
    found = re.findall(rb"^HTTP/1\.1 (\d+)", response, re.MULTILINE)
    if not found and response[:4] == b"220 ":
        found = [b"smtp " + code for code in re.findall(rb"^(\d{3} \d\.\d\.\d)", response, re.MULTILINE)]
    return [status.decode() for status in found] or ["nothing"]
