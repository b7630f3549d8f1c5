"""The client of commands: a slow server does not hold it for ever, and a rate limit is waited for."""

import contextlib
import http.server
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from postroad.network.http import api_client

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


@pytest.fixture(params=[HEAD, b"", HEAD.replace(b"Content-Length: 1000000", b"Transfer-Encoding: chunked")])
def slow_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server that sends a byte at a time, of a body or of the header fields, until the client closes."""

    def serve() -> None:
        connection, _ = listening.accept()
        # The wait is the time between two bytes. What arrives is the request, and then the end of the stream.
        with connection, contextlib.suppress(ConnectionError):
            connection.recv(65536)
            connection.settimeout(0.05)
            connection.sendall(request.param)
            while True:
                try:
                    if not connection.recv(1):
                        return
                except TimeoutError:
                    connection.sendall(b"1")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve)
        serving.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        serving.join()


def test_the_whole_time_of_a_request_is_bounded(slow_url: str) -> None:
    client = api_client.Client(slow_url, "key", user_agent="test", max_seconds=0.3)
    with pytest.raises(api_client.ServerError, match=r"no complete response within 0\.3 seconds") as refused:
        client.get("/v1/messages")
    assert refused.value.status is None


@contextlib.contextmanager
def answering_in_turn(*answers: tuple[int, str | None]) -> Iterator[tuple[str, list[str]]]:
    """A server with these statuses and Retry-After fields, one for each request; its URL and what it was asked."""
    left = list(answers)
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            status, retry_after = left.pop(0)
            body = b'{"error": "too many requests"}' if status == 429 else b'{"id": "1"}'
            self.send_response(status)
            if retry_after is not None:
                self.send_header("Retry-After", retry_after)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = False
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}", asked
        finally:
            listening.shutdown()
            thread.join()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def test_a_request_over_a_rate_limit_is_repeated_after_the_time_that_the_server_names(waits: list[float]) -> None:
    with answering_in_turn((429, "2"), (429, "0"), (201, None)) as (url, asked):
        client = api_client.Client(url, "key", user_agent="test")
        assert client.call("POST", "/v1/templates", {"alias": "welcome"}) == {"id": "1"}
        client.close()
    assert waits == [2, 1]
    assert asked == ['{"alias": "welcome"}'] * 3


@pytest.mark.parametrize(
    "retry_after, expected", [("31", []), (None, []), ("soon", []), ("-1", []), ("20", [20]), ("9" * 5000, [])]
)
def test_a_long_or_unknown_wait_is_an_error(waits: list[float], retry_after: str | None, expected: list[float]) -> None:
    with answering_in_turn(*[(429, retry_after)] * 3) as (url, asked):
        client = api_client.Client(url, "key", user_agent="test")
        with pytest.raises(api_client.ServerError, match="too many requests") as refused:
            client.call("POST", "/v1/templates", {})
        client.close()
    assert refused.value.status == 429
    assert waits == expected
    assert len(asked) == len(expected) + 1
