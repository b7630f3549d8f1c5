"""The API of another service on loopback: responses by path and query, as that service documents them.

It runs in a thread of its own, because commands run an event loop of their own.
"""

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# A status, a body as JSON or as bytes, and more header fields.
Answer = tuple[int, Any, dict[str, str]]


@dataclass(slots=True)
class Vendor:
    """The responses, and the requests that came. A list is answered in turn, its last one again and again."""

    answers: dict[str, Any] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    url: str = ""

    def answer(self, target: str) -> Answer:
        found = self.answers.get(target, self.answers.get(target.partition("?")[0]))
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        found = found(target) if callable(found) else found
        if found is None:
            return 404, {"message": "not found"}, {}
        return found if isinstance(found, tuple) else (200, found, {})


@contextlib.contextmanager
def running(answers: dict[str, Any], *, posted: object = None) -> Iterator[Vendor]:
    """A server for the time of the block. `posted` is the response to every POST."""
    vendor = Vendor(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            vendor.requests.append(self.path)
            vendor.headers.append(dict(self.headers))
            self._respond(*vendor.answer(self.path))

        def do_POST(self) -> None:
            vendor.requests.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self._respond(200, posted, {"Content-Type": "application/json"})

        def _respond(self, status: int, body: Any, fields: dict[str, str]) -> None:  # noqa: ANN401 - any JSON
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **fields}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Nothing on stderr."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    vendor.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield vendor
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
