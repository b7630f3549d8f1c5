"""The parser gives the same result however its bytes are cut, and says in public words why it stops."""

from typing import Any

import pytest

from postroad.network.http import http_messages
from tests.raw_http import get, post

CHUNKED = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n"


class Taken:
    """What the parser returned, as one line a request."""

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, bytes, bool]] = []
        self.bodies: list[bytes] = []
        self.begun = 0
        self.completed = 0

    def begin(self) -> None:
        self.begun += 1

    def request(self, headers: http_messages.Headers, *, method: bytes, url: bytes, keep_alive: bool, **_: Any) -> None:
        assert all(name == name.lower() for name, _ in headers)
        self.requests.append((method, url, keep_alive))
        self.bodies.append(b"")

    def part(self, content: bytes) -> None:
        self.bodies[-1] += content

    def complete(self) -> None:
        self.completed += 1


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 50, 10_000])
def test_the_result_is_the_same_however_the_bytes_are_cut(cut: int) -> None:
    taken = Taken()
    reader = http_messages.RequestParser(taken, http_messages.Limits())
    stream = post("/a", b"body") + get("/b?q") + CHUNKED + get("/d", "Connection: upgrade", "Upgrade: x") + get("/e")
    for start in range(0, len(stream), cut):
        reader.feed(stream[start : start + cut])
    methods_and_targets = [(b"POST", b"/a"), (b"GET", b"/b?q"), (b"POST", b"/c"), (b"GET", b"/d"), (b"GET", b"/e")]
    assert taken.requests == [(method, target, True) for method, target in methods_and_targets]
    assert taken.bodies == [b"body", b"", b"abcde", b"", b""]
    assert taken.completed == 5
    assert reader.stage == "between"


@pytest.mark.parametrize(
    "stream, stage", [(b"\r\n", "between"), (b"GET / HT", "head"), (post("/", b"half", length=9), "body")]
)
def test_the_stage_says_what_is_awaited(stream: bytes, stage: str) -> None:
    reader = http_messages.RequestParser(Taken(), http_messages.Limits())
    reader.feed(stream)
    assert reader.stage == stage


@pytest.mark.parametrize(
    "request_bytes", [get("/", "Connection: close"), b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"]
)
def test_a_request_may_be_the_last(request_bytes: bytes) -> None:
    taken = Taken()
    http_messages.RequestParser(taken, http_messages.Limits()).feed(request_bytes)
    assert [keep_alive for _, _, keep_alive in taken.requests] == [False]


def test_nothing_is_read_behind_the_last_request() -> None:
    taken = Taken()
    with pytest.raises(http_messages.BadRequest):
        http_messages.RequestParser(taken, http_messages.Limits()).feed(get("/", "Connection: close") + get("/more"))
    assert taken.completed == 1
    assert len(taken.requests) == 1


def test_a_refusal_of_the_taker_is_the_readers() -> None:
    class Full(Taken):
        def begin(self) -> None:
            raise http_messages.BadRequest("full")

    with pytest.raises(http_messages.BadRequest, match="full"):
        http_messages.RequestParser(Full(), http_messages.Limits()).feed(get("/"))


def test_a_mistake_of_ours_is_not_blamed_on_the_caller() -> None:
    class Broken(Taken):
        def complete(self) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        http_messages.RequestParser(Broken(), http_messages.Limits()).feed(get("/"))
