"""A server that answers every request with the same bytes, on loopback, and keeps what it was asked."""

import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Scripted:
    url: str
    asked: list[dict[str, str]] = field(default_factory=list)


@contextlib.contextmanager
def answering(body: bytes, *, status: int = 200, headers: dict[str, str] | None = None) -> Iterator[Scripted]:
    """Serve until the block ends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            received = self.rfile.read(length).decode()
            scripted.asked.append({**dict(self.headers.items()), "path": self.path, "body": received})
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name of the base class

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = False  # the end waits for those that still close their connections
        scripted = Scripted(f"http://127.0.0.1:{listening.server_port}")
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield scripted
        finally:
            listening.shutdown()
            thread.join()
