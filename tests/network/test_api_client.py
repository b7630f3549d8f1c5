"""The client of commands: a server that sends for ever does not hold it for ever."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from postroad.network import api_client

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
