"""The parser gives the same result however its bytes are cut, and says in public words why it stops."""

from typing import Any

import pytest

from postroad.network.http import http_messages
from postroad.network.http.http_messages import Framing
from tests.raw_http import get, post

CHUNKED = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n"


class Taken:
    """What the parser returned, as one line a request."""

    def __init__(self) -> None:
        self.requests: list[tuple[bytes, bytes, bytes, bool]] = []
        self.bodies: list[bytes] = []
        self.completed = 0
        # Those that arrived whole.
        self.whole = 0

    def request(self, head: http_messages.Head, content: bytes, *, is_complete: bool) -> None:
        assert all(name == name.lower() for name, _ in head.headers)
        self.requests.append((head.method, head.path, head.query, head.keep_alive))
        self.bodies.append(content)
        self.completed += is_complete
        self.whole += is_complete

    def part(self, content: bytes) -> None:
        self.bodies[-1] += content

    def complete(self) -> None:
        self.completed += 1


def parser(taken: Taken, *, limits: http_messages.Limits | None = None) -> http_messages.RequestParser:
    return http_messages.RequestParser(taken, limits or http_messages.Limits(), clock=lambda: 1.0)


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 50, 10_000])
def test_the_result_is_the_same_however_the_bytes_are_cut(cut: int) -> None:
    taken = Taken()
    reader = parser(taken)
    stream = post("/a", b"body") + get("/b?q") + CHUNKED + get("/d", "Connection: upgrade", "Upgrade: x") + get("/e")
    for start in range(0, len(stream), cut):
        reader.feed(stream[start : start + cut])
    assert taken.requests == [
        (b"POST", b"/a", b"", True),
        (b"GET", b"/b", b"q", True),
        (b"POST", b"/c", b"", True),
        (b"GET", b"/d", b"", True),
        (b"GET", b"/e", b"", True),
    ]
    assert taken.bodies == [b"body", b"", b"abcde", b"", b""]
    assert taken.completed == 5
    assert reader.stage == "between"


@pytest.mark.parametrize(
    "stream, stage", [(b"\r\n", "between"), (b"GET / HT", "head"), (post("/", b"half", length=9), "body")]
)
def test_the_stage_says_what_is_awaited(stream: bytes, stage: str) -> None:
    reader = parser(Taken())
    reader.feed(stream)
    assert reader.stage == stage


@pytest.mark.parametrize(
    "request_bytes", [get("/", "Connection: close"), b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"]
)
def test_a_request_may_be_the_last(request_bytes: bytes) -> None:
    taken = Taken()
    parser(taken).feed(request_bytes)
    assert [keep_alive for _, _, _, keep_alive in taken.requests] == [False]


def test_nothing_is_read_behind_the_last_request() -> None:
    taken = Taken()
    with pytest.raises(http_messages.BadRequest):
        parser(taken).feed(get("/", "Connection: close") + get("/more"))
    assert taken.completed == 1
    assert len(taken.requests) == 1


@pytest.mark.parametrize(
    "pieces, is_whole",
    [
        ([post("/", b"body")], True),
        ([get("/")], True),
        ([get("/")[:20], get("/")[20:]], True),
        ([post("/", b"", length=4), b"body"], False),
        ([post("/", b"bo", length=4), b"dy"], False),
        ([CHUNKED], False),
    ],
)
def test_a_request_whose_end_comes_with_its_head_is_handed_over_once(pieces: list[bytes], is_whole: bool) -> None:  # noqa: FBT001
    taken = Taken()
    reader = parser(taken)
    for piece in pieces:
        reader.feed(piece)
    assert (len(taken.requests), taken.completed, taken.whole) == (1, 1, is_whole)


def test_what_came_of_a_body_before_it_is_malformed_is_handed_over_first() -> None:
    taken = Taken()
    with pytest.raises(http_messages.BadRequest):
        parser(taken).feed(CHUNKED.partition(b"2\r\n")[0] + b"nonsense\r\n")
    assert (taken.bodies, taken.completed) == ([b"abc"], 0)


def test_a_malformed_request_behind_a_good_one_does_not_take_it_back() -> None:
    taken = Taken()
    with pytest.raises(http_messages.BadRequest):
        parser(taken).feed(post("/", b"body") + b"\0")
    assert (taken.bodies, taken.whole) == ([b"body"], 1)


def test_a_refusal_of_a_head_in_the_parser_is_raised_as_it_is() -> None:
    with pytest.raises(http_messages.BadRequest, match="Host"):
        parser(Taken()).feed(b"GET / HTTP/1.1\r\n\r\n")


def test_no_request_begins_while_there_is_no_room() -> None:
    taken = Taken()
    reader = parser(taken)
    reader.is_full = True
    with pytest.raises(http_messages.BadRequest, match="pipelined"):
        reader.feed(get("/"))
    assert taken.requests == []


def test_a_mistake_of_ours_is_not_blamed_on_the_caller() -> None:
    class Broken(Taken):
        def request(self, head: http_messages.Head, content: bytes, *, is_complete: bool) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        parser(Broken()).feed(get("/"))


# A head is a request, or is refused before anyone could read it differently.


LIMITS = http_messages.Limits(head_bytes=100, header_fields=3)
HOST = (b"host", b"x")


def test_a_plain_head_is_taken() -> None:
    assert http_messages.check_request([HOST], version="1.1", limits=LIMITS) is False
    assert http_messages.check_request([], version="1.0", limits=LIMITS) is False


@pytest.mark.parametrize(
    "value, version, waits", [(b"100-Continue", "1.1", True), (b"100-continue", "1.0", False), (b"more", "1.1", False)]
)
def test_only_http_1_1_waits_to_continue(value: bytes, version: str, waits: bool) -> None:  # noqa: FBT001
    assert http_messages.check_request([HOST, (b"expect", value)], version=version, limits=LIMITS) is waits


@pytest.mark.parametrize(
    "headers, version",
    [
        ([HOST], "2.0"),
        ([HOST], "0.9"),
        ([], "1.1"),
        ([HOST, HOST], "1.1"),
        ([HOST, HOST], "1.0"),
        ([HOST, (b"transfer-encoding", b"gzip, chunked")], "1.1"),
        ([(b"transfer-encoding", b"chunked")], "1.0"),
        ([HOST, (b"a", b""), (b"b", b""), (b"c", b"")], "1.1"),
        ([HOST, (b"a", b"x" * 100)], "1.1"),
    ],
)
def test_a_head_that_is_ambiguous_or_too_large_is_refused(headers: http_messages.Headers, version: str) -> None:
    with pytest.raises(http_messages.BadRequest):
        http_messages.check_request(headers, version=version, limits=LIMITS)


@pytest.mark.parametrize(
    "url, target",
    [
        (b"/", (b"/", b"")),
        (b"*", (b"*", b"")),
        (b"/a%20b?c=%20", (b"/a%20b", b"c=%20")),
        (b"http://x.test/a?b#c", (b"/a", b"b")),
    ],
)
def test_a_target_is_split(url: bytes, target: tuple[bytes, bytes]) -> None:
    assert http_messages.target(url) == target


@pytest.mark.parametrize("url", [b"http://x.test", b"x.test:443", "/é".encode(), b""])
def test_a_target_without_a_path_is_refused(url: bytes) -> None:
    with pytest.raises(http_messages.BadRequest):
        http_messages.target(url)


def test_an_offer_to_upgrade_is_taken_out_and_the_end_of_the_connection_stays() -> None:
    headers = [HOST, (b"connection", b"Upgrade, Close"), (b"upgrade", b"h2c"), (b"a", b"b")]
    head = http_messages.without_upgrade(headers, method=b"GET", url=b"/x", version="1.1")
    assert head == b"GET /x HTTP/1.1\r\nhost: x\r\na: b\r\nconnection: close\r\n\r\n"


# A head says how its content ends, and nothing that its fields were not allowed to say.


def head(status: int = 200, fields: tuple[http_messages.Field, ...] = (), **facts: Any) -> http_messages.ResponseHead:
    return http_messages.head(status, fields, **{"date": b"date: now", "keep_alive": True, "size": None, **facts})


def test_fields_keep_their_order_and_their_bytes() -> None:
    content, *_ = head(404, ((b"b", b"1"), (b"a", b"\xe9"), (b"b", b"2")), size=0)
    start = b"HTTP/1.1 404 Not Found\r\ndate: now\r\n"
    assert content == start + b"b: 1\r\na: \xe9\r\nb: 2\r\ncontent-length: 0\r\n\r\n"


def test_a_status_without_a_name_is_still_a_status_line() -> None:
    assert head(299)[0].startswith(b"HTTP/1.1 299 \r\n")


@pytest.mark.parametrize(
    "status, fields, facts, framing",
    [
        (200, ((b"content-length", b"5"),), {}, (Framing.LENGTH, 5, True)),
        (200, ((b"content-length", b"5"),), {"size": 9}, (Framing.LENGTH, 5, True)),
        (200, (), {"size": 9}, (Framing.LENGTH, 9, True)),
        (200, (), {}, (Framing.CHUNKED, 0, True)),
        (200, (), {"version": "1.0"}, (Framing.CLOSE, 0, False)),
        (204, (), {"size": 0}, (Framing.NOTHING, 0, True)),
        (304, (), {}, (Framing.NOTHING, 0, True)),
        (200, (), {"method": "HEAD"}, (Framing.NOTHING, 0, True)),
    ],
)
def test_the_framing_is_what_the_caller_can_read(
    status: int, fields: tuple[http_messages.Field, ...], facts: dict[str, Any], framing: tuple[Framing, int, bool]
) -> None:
    content, *decided = head(status, fields, **facts)
    assert tuple(decided) == framing
    assert (b"transfer-encoding: chunked" in content) == (framing[0] is Framing.CHUNKED)
    assert content.count(b"content-length") == (framing[0] is Framing.LENGTH)
    assert (b"connection: close" in content) == (not framing[2])


@pytest.mark.parametrize("value, kept", [(b"Close", False), (b"keep-alive", True)])
def test_an_application_may_end_the_connection_and_no_more(value: bytes, kept: bool) -> None:  # noqa: FBT001
    content, framing, _, keep_alive = head(fields=((b"connection", value), (b"transfer-encoding", b"gzip")))
    assert keep_alive is kept
    assert framing is Framing.CHUNKED
    assert content.count(b"connection") == (not kept)
    assert b"gzip" not in content


@pytest.mark.parametrize("value", [b"a\r\nb: c", b"a\nb: c", b"a\rb", b"a\0b"])
def test_a_field_cannot_write_a_line_of_its_own(value: bytes) -> None:
    for field in ((b"x", value), (value, b"x")):
        with pytest.raises(ValueError, match="line break"):
            head(fields=(field,))


def test_an_empty_part_is_not_the_last_chunk() -> None:
    assert http_messages.chunk(b"", last=False) == b""
    assert http_messages.chunk(b"", last=True) == b"0\r\n\r\n"
    assert http_messages.chunk(b"x" * 17, last=True) == b"11\r\n" + b"x" * 17 + b"\r\n0\r\n\r\n"
