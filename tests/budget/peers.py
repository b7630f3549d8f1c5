"""The other ends of the connections: clients, a mail host, an endpoint; in threads that are not counted."""

import selectors
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

TIMEOUT_SECONDS: Final = 120.0
# The rest of a batch that does not come at once does not come at all.
MAX_HELD_SECONDS: Final = 2.0
READ_OCTETS: Final = 1024 * 1024


class Client:
    """A connection to the service, and what it answers."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, TIMEOUT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Send, which never waits: it is little."""
        self._socket.sendall(data)

    def receive(self, is_complete: Callable[[bytes], bool]) -> bytes:
        """Wait for a response."""
        received = b""
        while not is_complete(received):
            part = self._socket.recv(READ_OCTETS)
            if not part:
                raise ConnectionError(f"closed after {received!r}")
            received += part
        return received

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class Server:
    """A server that answers what is complete, and counts it. A batch is answered when all of it has come."""

    def __init__(
        self,
        answer: Callable[[bytes], tuple[bytes, int, bool] | None],
        block: Callable[[threading.Event], None],
        *,
        greeting: bytes = b"",
    ) -> None:
        """`answer` gets what a client has sent so far: the answer, how much it is about, and whether it is counted.

        `block` keeps the clients from reading until the event is set.
        """
        self._answer = answer
        self._block = block
        self._greeting = greeting
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._expected = 1
        self._held: list[tuple[socket.socket, bytes]] = []
        self._done = threading.Semaphore(0)
        threading.Thread(target=self._serve, daemon=True).start()

    def expect(self, count: int) -> None:
        """So many come together."""
        self._expected = count

    def wait(self, count: int) -> None:
        """Until the given number was answered."""
        for _ in range(count):
            if not self._done.acquire(timeout=TIMEOUT_SECONDS):
                raise TimeoutError

    def _serve(self) -> None:
        sys.setprofile(None)
        received: dict[socket.socket, bytes] = {}
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while True:
                ready = selector.select(MAX_HELD_SECONDS if self._held else None)
                if not ready:
                    self._answer_held()
                for key, _ in ready:
                    if key.fileobj is self._listener:
                        connection, _ = self._listener.accept()
                        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        connection.sendall(self._greeting)
                        selector.register(connection, selectors.EVENT_READ)
                        received[connection] = b""
                    elif isinstance(key.fileobj, socket.socket):
                        part = key.fileobj.recv(READ_OCTETS)
                        if not part:
                            selector.unregister(key.fileobj)
                            key.fileobj.close()
                            continue
                        received[key.fileobj] = self._reply(key.fileobj, received[key.fileobj] + part)

    def _reply(self, connection: socket.socket, received: bytes) -> bytes:
        """Answer; returns what is not complete yet."""
        while (found := self._answer(received)) is not None:
            answer, size, is_counted = found
            received = received[size:]
            if not is_counted:
                connection.sendall(answer)
                continue
            self._held.append((connection, answer))
            if len(self._held) >= self._expected:
                self._answer_held()
        return received

    def _answer_held(self) -> None:
        is_answered = threading.Event()
        if self._expected > 1:
            self._block(is_answered)
        for waiting, held in self._held:
            waiting.sendall(held)
            self._done.release()
        self._held.clear()
        is_answered.set()


def answer_smtp(received: bytes) -> tuple[bytes, int, bool] | None:
    """A mail host: it takes everything, and answers commands that come together together."""
    if received.startswith((b"Return-Path", b"Received", b"DKIM-Signature", b"From:", b"Date:", b"Message-ID")) or (
        b"\r\n.\r\n" in received
    ):
        end = received.find(b"\r\n.\r\n")
        return None if end < 0 else (b"250 2.0.0 taken\r\n", end + 5, True)
    if not received.endswith(b"\r\n"):
        return None
    replies = [_reply_to(line) for line in received.split(b"\r\n")[:-1]]
    return b"".join(replies), len(received), False


def _reply_to(line: bytes) -> bytes:
    match line[:4].upper():
        case b"EHLO":
            return b"250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250 SIZE 20000000\r\n"
        case b"DATA":
            return b"354 go on\r\n"
        case b"QUIT":
            return b"221 2.0.0 bye\r\n"
        case _:
            return b"250 2.0.0 ok\r\n"


def answer_http(received: bytes) -> tuple[bytes, int, bool] | None:
    """A webhook endpoint."""
    head, separator, body = received.partition(b"\r\n\r\n")
    if not separator:
        return None
    _, _, length = head.lower().partition(b"\r\ncontent-length: ")
    size = int(length.split(b"\r\n")[0])
    if len(body) < size:
        return None
    return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", len(head) + 4 + size, True


def is_http_response(received: bytes) -> bool:
    """Whether a response with a body is complete."""
    return answer_http(received) is not None


def is_reply(received: bytes) -> bool:
    """Whether an SMTP reply is complete."""
    lines: Sequence[bytes] = received.split(b"\r\n")
    return received.endswith(b"\r\n") and lines[-2][3:4] == b" "
