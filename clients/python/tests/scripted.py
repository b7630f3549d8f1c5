"""A scripted server on loopback.

It does one step of its script for each request, over as many connections as come. A step is the bytes of an answer, or
a function that gets the socket.
"""

import contextlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable
from typing import Any

# The requests that a server has read: `line`, `headers`, `body`, and the number of the `connection`.
Seen = list[dict[str, Any]]
Step = bytes | Callable[[socket.socket], None]
PATIENCE_SECONDS = 300.0
# A larger body is left unread before the step, as by a server that refuses it.
MAX_READ_BYTES = 1024 * 1024


class Server:
    """Listens at `url` from now on, until it is closed; `seen` grows with every request."""

    def __init__(self, steps: list[Step], *, host: str, context: ssl.SSLContext | None, seen: Seen) -> None:
        self._steps = steps
        self._context = context
        self._seen = seen
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._sockets: list[socket.socket] = []
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if context else 'http'}://{name}:{self._listener.getsockname()[1]}"
        self._start(self._accept)

    def close(self) -> None:
        # A shutdown wakes the threads, which a close would not.
        for sock in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
            assert not thread.is_alive()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        number = 0
        try:
            while True:
                sock, _ = self._listener.accept()
                sock.settimeout(PATIENCE_SECONDS)
                self._sockets.append(sock)
                self._start(self._serve, sock, number)
                number += 1
        except OSError:
            pass  # closed, at the end of the test

    def _serve(self, sock: socket.socket, number: int) -> None:
        try:
            if self._context:
                sock = self._context.wrap_socket(sock, server_side=True)
                self._sockets.append(sock)
            while (request := self._request(sock)) is not None:
                with self._lock:
                    self._seen.append({**request, "connection": number})
                    step = self._steps.pop(0)
                if isinstance(step, bytes):
                    sock.sendall(step)
                else:
                    step(sock)
        except OSError:
            pass  # the client has gone, which some tests are about

    @staticmethod
    def _request(sock: socket.socket) -> dict[str, Any] | None:
        received = b""
        while b"\r\n\r\n" not in received:
            part = sock.recv(65536)
            if not part:
                return None
            received += part
        head, _, body = received.partition(b"\r\n\r\n")
        line, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        length = int(headers.get("Content-Length", 0))
        while len(body) < length <= MAX_READ_BYTES:
            body += sock.recv(65536)
        return {"line": line, "headers": headers, "body": body}


def answer(status: int, content: object = None, **headers: str) -> bytes:
    """An answer with a body of bytes, or of JSON; `_` stands for `-` in names of headers."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    given = {"Content_Length": str(len(body)), **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in given.items())
    return f"HTTP/1.1 {status} Word\r\n{lines}\r\n".encode() + body


def reset(sock: socket.socket) -> None:
    """A step that resets the connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


# The fixtures `serve` and `call` of conftest.py.
Serve = Callable[..., str]
Call = Callable[..., Awaitable[Any]]
