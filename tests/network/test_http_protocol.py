"""A connection is bounded in every direction, and what is not HTTP gets the error object all the same."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad import errors
from postroad.network.http import http_messages, http_server
from tests import passing_time, raw_http
from tests.raw_http import get, post


class Served:
    """A listener in front of an application that answers with what it received."""

    def __init__(self, limits: http_messages.Limits) -> None:
        self.listener = http_server.HttpListener(self.answer, refuse=self.refuse, limits=limits, sweep_seconds=0.02)
        self.requests: list[dict[str, Any]] = []
        self.disconnected = asyncio.Event()
        self.taken = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    @property
    def address(self) -> tuple[str, int]:
        return self.listener.address

    async def pass_seconds(self, seconds: float, *, at: str) -> None:
        """So much time passes after the one connection has come to this stage of a request."""
        await passing_time.until_one(self.listener, lambda connection: connection._reader.stage == at)
        passing_time.pass_seconds(self.listener, seconds)

    async def until_any(self, stage: str) -> http_server.HttpProtocol:
        """Wait for a connection at this stage of a request."""
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            while True:
                for connection in self.listener._connections:
                    assert isinstance(connection, http_server.HttpProtocol)
                    if connection._reader.stage == stage:
                        return connection
                await asyncio.sleep(0)

    def refuse(self, error: errors.PostroadError) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        content = f'{{"error": "{error.message}", "code": "{error.code}"}}'.encode()
        return error.status, [(b"x-request-id", b"req_1"), (b"content-length", b"%d" % len(content))], content

    async def answer(self, request: http_server.Request) -> None:
        body, has_more = b"", request.raw_path != b"/unread"
        while has_more:
            try:
                part, has_more = await request.receive()
            except http_server.Disconnected:
                self.disconnected.set()
                return
            body += part
        self.taken.set()
        await self.go_on.wait()
        self.requests.append({"headers": request.headers, "body": body})
        text = b"%s %s %d" % (request.method.encode(), request.raw_path, len(body))
        request.respond(200, [(b"content-length", b"%d" % len(text))], text)


@contextlib.asynccontextmanager
async def served(**limits: Any) -> AsyncIterator[Served]:
    server = Served(http_messages.Limits(**limits))
    await server.listener.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        server.go_on.set()
        await server.listener.stop(grace_seconds=5)


def assert_refused(
    response: raw_http.Response, about: str, *, status: int = 400, code: str = "invalid_request"
) -> None:
    assert response.status == status
    assert response.headers["x-request-id"] == "req_1"
    assert response.headers["connection"] == "close"
    assert response.json()["code"] == code
    assert re.search(about, response.json()["error"])


def assert_too_slow(response: raw_http.Response, about: str) -> None:
    assert_refused(response, about, status=503, code="temporary_failure")


async def test_a_request_is_served_and_the_connection_kept() -> None:
    async with served() as server, raw_http.connect(server.address) as connection:
        for body in (b"x", b"y" * 100_000, b""):
            await connection.send(post("/", body))
            assert (await connection.response()).body == b"POST / %d" % len(body)


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"EHLO example.com\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT example.com:443 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http://example.com HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\n\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n",
    ],
)
async def test_what_is_not_a_valid_request_gets_the_error_object(request_bytes: bytes) -> None:
    async with served() as server:
        assert_refused(await raw_http.exchange(server.address, request_bytes), "")
        assert server.requests == []


@pytest.mark.parametrize(
    "framing",
    [
        ("Content-Length: 3", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 3"),
        ("Content-Length: 3", "Content-Length: 3"),
        ("Content-Length: 3", "Content-Length: 4"),
        ("Content-Length: 3, 3",),
        ("Content-Length: +3",),
        ("Content-Length: -3",),
        ("Content-Length: 0x3",),
        ("Content-Length : 3",),
        ("Content-Length: 99999999999999999999999",),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked, gzip",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: identity",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding : chunked",),
        ("Transfer-Encoding:\x0bchunked",),
    ],
)
async def test_a_body_whose_end_two_readers_could_see_differently_is_refused(framing: tuple[str, ...]) -> None:
    head = "\r\n".join(["POST / HTTP/1.1", "Host: x", *framing]).encode() + b"\r\n\r\n"
    async with served() as server:
        response = await raw_http.exchange(server.address, head + b"3\r\nabc\r\n0\r\n\r\n" + get("/smuggled"))
        assert_refused(response, "")
        assert server.requests == []


async def test_http_1_0_has_no_chunks() -> None:
    request = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    async with served() as server:
        assert_refused(await raw_http.exchange(server.address, request), "HTTP/1.1")


@pytest.mark.parametrize(
    "chunk", [b'3;a="\r\n', b"3 \r\nabc\r\n", b"3\nabc\n", b"-3\r\nabc\r\n", b"3\r\nabcd\r\n", b"g\r\n"]
)
async def test_a_broken_chunk_ends_the_request_and_the_application_hears_of_it(chunk: bytes) -> None:
    async with served() as server:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert_refused(await raw_http.exchange(server.address, head + chunk), "not a valid HTTP")
        await asyncio.wait_for(server.disconnected.wait(), raw_http.TIMEOUT_SECONDS)


@pytest.mark.parametrize("pieces", [1, 7])
async def test_the_head_is_bounded_in_bytes(pieces: int) -> None:
    async with served(head_bytes=4096) as server, raw_http.connect(server.address) as connection:
        request = get("/", "X-Long: " + "a" * 5000)
        step = len(request) // pieces
        for start in range(0, len(request), step):
            await connection.send(request[start : start + step])
            await asyncio.sleep(0)
        assert_refused(await connection.response(), "header fields")


async def test_a_field_without_an_end_is_bounded() -> None:
    async with served(head_bytes=4096) as server, raw_http.connect(server.address) as connection:
        await connection.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
        answered = asyncio.create_task(connection.response())
        while not answered.done():
            await connection.send(b"a" * 1024)
            await asyncio.sleep(0.001)
        assert_refused(await answered, "header fields")


async def test_a_head_within_the_bound_is_served_however_it_is_cut() -> None:
    request = get("/", *(f"X-{number}: {'a' * 500}" for number in range(90)))
    async with served() as server, raw_http.connect(server.address) as connection:
        for start in range(0, len(request), 999):
            await connection.send(request[start : start + 999])
            await asyncio.sleep(0)
        assert (await connection.response()).status == 200


async def test_the_head_is_bounded_in_fields() -> None:
    async with served() as server:
        at_most = [f"X-{number}: a" for number in range(99)]  # and Host
        assert (await raw_http.exchange(server.address, get("/", *at_most))).status == 200
        assert_refused(await raw_http.exchange(server.address, get("/", *at_most, "X: a")), "at most 100")


async def test_a_path_beyond_the_bound_names_nothing() -> None:
    async with served(url_bytes=100) as server:
        assert (await raw_http.exchange(server.address, get("/" + "a" * 99))).status == 200
        for path in ("/" + "a" * 100, "/" + "a" * 100 + "?a", "/" + "a" * 5000):
            response = await raw_http.exchange(server.address, get(path))
            assert_refused(response, "at most 100 bytes", status=404, code="not_found")


async def test_a_query_beyond_the_bound_is_refused() -> None:
    async with served(url_bytes=100) as server:
        assert (await raw_http.exchange(server.address, get("/?" + "a" * 98))).status == 200
        assert_refused(await raw_http.exchange(server.address, get("/?" + "a" * 99)), "at most 100 bytes")


async def test_a_long_address_and_long_header_fields_are_served_together() -> None:
    fields = [f"X-{number}: {'a' * 1000}" for number in range(60)]
    async with served() as server, raw_http.connect(server.address) as connection:
        await connection.send(get("/" + "a" * 65_534, *fields))
        assert (await connection.response()).status == 200
        await connection.send(get("/" + "a" * 65_535, *fields))
        assert_refused(await connection.response(), "at most 65535 bytes", status=404, code="not_found")


async def test_a_head_that_never_ends_is_refused() -> None:
    async with served(head_seconds=30) as server, raw_http.connect(server.address) as connection:
        await connection.send(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        await server.pass_seconds(31, at="head")
        assert_too_slow(await connection.response(), "head of the request did not arrive")


@pytest.mark.parametrize("nothing", [b"", b"\r\n"])
async def test_a_connection_that_asks_nothing_is_closed(nothing: bytes) -> None:
    async with served(head_seconds=0.05, idle_seconds=1) as server, raw_http.connect(server.address) as connection:
        await connection.send(nothing)
        assert await connection.rest() == b""


async def test_empty_lines_do_not_keep_an_idle_connection_alive() -> None:
    async with served(idle_seconds=1) as server, raw_http.connect(server.address) as connection:
        await connection.send(get("/"))
        await connection.response()
        await connection.send(b"\r\n")
        assert await connection.rest() == b""


async def test_a_body_that_never_ends_is_refused_and_the_application_hears_of_it() -> None:
    async with served(body_seconds=30) as server, raw_http.connect(server.address) as connection:
        await connection.send(post("/", b"half", length=8))
        await server.pass_seconds(31, at="body")
        assert_too_slow(await connection.response(), "body of the request did not arrive")
        assert await connection.rest() == b""
        await asyncio.wait_for(server.disconnected.wait(), raw_http.TIMEOUT_SECONDS)


async def test_time_spent_on_the_answer_is_not_the_callers() -> None:
    async with served(body_seconds=30, head_seconds=30) as server, raw_http.connect(server.address) as connection:
        server.go_on.clear()
        await connection.send(post("/", b"whole"))
        await asyncio.wait_for(server.taken.wait(), raw_http.TIMEOUT_SECONDS)
        await server.pass_seconds(31, at="between")
        server.go_on.set()
        assert (await connection.response()).status == 200


async def test_a_body_in_too_many_chunks_is_refused() -> None:
    async with served(body_chunks=100) as server:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        enough = await raw_http.exchange(server.address, head + b"1\r\na\r\n" * 99 + b"0\r\n\r\n")
        assert enough.body == b"POST / 99"
        assert_refused(await raw_http.exchange(server.address, head + b"1\r\na\r\n" * 101), "too many chunks")


CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_trailer_fields_are_nobodys() -> None:
    async with served() as server, raw_http.connect(server.address) as connection:
        await connection.send(CHUNKED + b"1\r\na\r\n0\r\nAuthorization: Bearer x\r\nHost: y\r\n\r\n" + get("/next"))
        assert (await connection.response()).body == b"POST / 1"
        assert (await connection.response()).body == b"GET /next 0"
        assert [name for name, _ in server.requests[0]["headers"]] == [b"host", b"transfer-encoding"]


@pytest.mark.parametrize(
    "start, more", [(b"0\r\nX: ", b"a" * 1000), (b"0\r\n", b"X: a\r\n" * 100), (b"1;a=", b"a" * 1000)]
)
async def test_what_surrounds_the_content_of_chunks_is_bounded(start: bytes, more: bytes) -> None:
    async with served(framing_bytes=10_000) as server, raw_http.connect(server.address) as connection:
        await connection.send(CHUNKED + start)
        answered = asyncio.create_task(connection.response())
        while not answered.done():
            await connection.send(more)
            await asyncio.sleep(0.001)
        assert_refused(await answered, "too much chunk overhead")


async def test_a_long_body_in_small_chunks_is_served() -> None:
    async with served(framing_bytes=10_000) as server, raw_http.connect(server.address) as connection:
        await connection.send(CHUNKED)
        for _ in range(500):
            await connection.send(b"3e8\r\n" + b"a" * 1000 + b"\r\n")
        await connection.send(b"0\r\n\r\n")
        assert (await connection.response()).body == b"POST / 500000"


async def test_an_unread_body_is_drained_and_the_connection_kept() -> None:
    async with served() as server, raw_http.connect(server.address) as connection:
        await connection.send(post("/unread", b"a" * 10, length=1_000_000))
        assert (await connection.response()).body == b"POST /unread 0"
        await connection.send(b"a" * 999_990 + get("/next"))
        assert (await connection.response()).body == b"GET /next 0"


async def test_a_body_that_filled_the_buffer_before_its_answer_does_not_stop_the_connection() -> None:
    async with served(unread_bytes=1000) as server, raw_http.connect(server.address) as connection:
        server.go_on.clear()
        await connection.send(post("/unread", b"a" * 50_000, length=1_000_000))
        await asyncio.sleep(0.05)  # the server reads until its buffer is full
        server.go_on.set()
        assert (await connection.response()).body == b"POST /unread 0"
        await connection.send(b"a" * 950_000 + get("/next"))
        assert (await connection.response()).body == b"GET /next 0"


async def test_every_request_has_its_own_share_of_draining() -> None:
    async with served(drain_bytes=100_000) as server, raw_http.connect(server.address) as connection:
        for _ in range(5):
            await connection.send(post("/unread", b"", length=60_000))
            assert (await connection.response()).status == 200
            await connection.send(b"a" * 60_000)


async def test_an_unread_body_is_drained_only_so_far() -> None:
    limits = {"drain_bytes": 100_000, "drain_seconds": 1000}
    async with served(**limits) as server, raw_http.connect(server.address) as connection:
        await connection.send(post("/unread", b"", length=10**12))
        assert (await connection.response()).status == 200
        with pytest.raises(ConnectionError):
            await connection.send(b"a" * 64_000_000)  # more than any socket holds


async def test_an_unread_body_is_drained_only_so_long() -> None:
    async with served(drain_seconds=0.05) as server, raw_http.connect(server.address) as connection:
        await connection.send(post("/unread", b"", length=1_000))
        assert (await connection.response()).status == 200
        assert await connection.rest() == b""


async def test_a_drained_connection_that_stays_idle_is_closed() -> None:
    async with served(idle_seconds=1) as server, raw_http.connect(server.address) as connection:
        await connection.send(post("/unread", b"", length=3))
        assert (await connection.response()).status == 200
        await connection.send(b"abc")
        assert await connection.rest() == b""


@pytest.mark.parametrize("framing", ["length", "chunks"])
@pytest.mark.parametrize("cut", [20, 150, 10_000])
async def test_an_offer_to_upgrade_is_ignored_and_the_body_read(framing: str, cut: int) -> None:
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAAA"
    body = get("/smuggled")
    if framing == "length":
        request = post("/", body, offer)
    else:
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n" + offer.encode() + b"\r\n\r\n"
        request = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    stream = request + request + get("/next", offer)
    async with served() as server, raw_http.connect(server.address) as connection:
        for start in range(0, len(stream), cut):
            await connection.send(stream[start : start + cut])
            await asyncio.sleep(0)
        for answer in (b"POST / %d" % len(body), b"POST / %d" % len(body), b"GET /next 0"):
            assert (await connection.response()).body == answer
        assert [request["body"] for request in server.requests] == [body, body, b""]


async def test_an_offer_to_upgrade_may_end_the_connection() -> None:
    async with served() as server, raw_http.connect(server.address) as connection:
        await connection.send(get("/", "Connection: Upgrade, close", "Upgrade: websocket"))
        assert (await connection.response()).headers["connection"] == "close"
        assert await connection.rest() == b""


async def test_while_draining_the_last_response_of_a_connection_says_that_it_ends() -> None:
    async with served() as server, raw_http.connect(server.address) as kept:
        async with raw_http.connect(server.address) as pipelined:
            server.go_on.clear()
            await pipelined.send(get("/1") + get("/2") + get("/3"))
            await server.taken.wait()
            server.listener.drain()
            server.go_on.set()
            answers = [await pipelined.response() for _ in range(3)]
            assert [answer.headers.get("connection") for answer in answers] == [None, None, "close"]
            assert await pipelined.rest() == b""
        await kept.send(get("/kept"))
        assert (await kept.response()).headers["connection"] == "close"
        assert await kept.rest() == b""
        answer = await raw_http.exchange(server.address, get("/new"))
        assert (answer.body, answer.headers["connection"]) == (b"GET /new 0", "close")


async def test_pipelining_is_bounded_and_what_was_taken_is_answered() -> None:
    async with served(pipelined_requests=4) as server, raw_http.connect(server.address) as connection:
        server.go_on.clear()
        await connection.send(b"".join(get(f"/{number}") for number in range(100)))
        server.go_on.set()
        answered = (await connection.rest()).count(b"HTTP/1.1 200 OK")
        assert answered == 5  # the one under way, and four behind it


async def test_garbage_behind_a_good_request_does_not_cost_it_its_answer() -> None:
    async with served() as server, raw_http.connect(server.address) as connection:
        server.go_on.clear()
        await connection.send(get("/good") + b"\x00\x01\x02")
        server.go_on.set()
        assert (await connection.response()).body == b"GET /good 0"
        assert await connection.rest() == b""


async def test_a_connection_too_many_is_turned_away_while_all_others_are_served() -> None:
    async with served(connections=3, connections_per_address=2) as server, contextlib.AsyncExitStack() as stack:
        server.go_on.clear()
        busy = []
        for local in ("127.0.0.1", "127.0.0.1", "127.1.0.1"):
            busy.append(await stack.enter_async_context(raw_http.connect(server.address, local=(local, 0))))
            await busy[-1].send(get("/"))
            await server.taken.wait()
            server.taken.clear()
        for local, about in (("127.0.0.1", "too many connections from your address"), ("127.2.0.1", "")):
            async with raw_http.connect(server.address, local=(local, 0)) as refused:
                assert_refused(await refused.response(), about, status=503, code="service_unavailable")
                assert await refused.rest() == b""
        server.go_on.set()
        for connection in busy:
            assert (await connection.response()).status == 200


@pytest.mark.usefixtures("old_at_once")
async def test_idle_connections_make_room_the_oldest_first() -> None:
    """Those in the middle of a body or a head, silent ones and kept ones."""
    async with served(connections=3) as server, contextlib.AsyncExitStack() as stack:

        async def another(request: bytes, network: int) -> raw_http.Connection:
            opened = await stack.enter_async_context(raw_http.connect(server.address, local=(f"127.{network}.0.1", 0)))
            await opened.send(request)
            return opened

        slow = await another(post("/", b"12345")[:-1], 1)
        await server.until_any("body")
        silent = await another(b"", 2)
        kept = await another(get("/"), 3)
        assert (await kept.response()).status == 200
        half = await another(get("/")[:9], 4)
        await server.until_any("head")
        assert_refused(await slow.response(), "too many connections", status=503, code="service_unavailable")
        await another(b"", 5)
        assert await silent.rest() == b""
        await another(b"", 6)
        assert await kept.rest() == b""
        last = await another(get("/"), 7)
        assert_refused(await half.response(), "too many connections", status=503, code="service_unavailable")
        assert (await last.response()).status == 200


@pytest.mark.usefixtures("old_at_once")
async def test_the_body_of_an_account_that_does_not_end_makes_room_after_a_while() -> None:
    async with served(connections=1) as server, raw_http.connect(server.address) as slow:
        await slow.send(post("/", b"1", length=9))
        connection = await server.until_any("body")
        assert connection._active is not None
        connection._active.account_id = "acc_1"
        assert connection.idle_since is None
        connection._reader.began_at -= http_server.SLOW_BODY_SECONDS
        async with raw_http.connect(server.address) as newcomer:
            await newcomer.send(get("/"))
            assert (await newcomer.response()).status == 200
        assert_refused(await slow.response(), "too many connections", status=503, code="service_unavailable")
        assert await slow.rest() == b""
        await asyncio.wait_for(server.disconnected.wait(), raw_http.TIMEOUT_SECONDS)


@pytest.mark.usefixtures("old_at_once")
@pytest.mark.parametrize("is_delayed", [True, False])
async def test_a_request_that_only_waits_for_its_delayed_answer_makes_room(is_delayed: bool) -> None:  # noqa: FBT001
    async with served(connections=1) as server, raw_http.connect(server.address) as waiting:
        server.go_on.clear()
        await waiting.send(get("/"))
        await server.taken.wait()
        (connection,) = server.listener._connections
        assert isinstance(connection, http_server.HttpProtocol)
        assert connection._active is not None
        if is_delayed:
            connection._active.is_delayed = True
        async with raw_http.connect(server.address, local=("127.1.0.1", 0)) as newcomer:
            refused = waiting if is_delayed else newcomer
            assert_refused(await refused.response(), "too many connections", status=503, code="service_unavailable")
        server.go_on.set()


@pytest.mark.usefixtures("old_at_once")
async def test_a_request_that_has_arrived_is_answered_when_its_connection_makes_room() -> None:
    async with served(connections=1) as server, raw_http.connect(server.address) as fresh:
        await server.until_any("between")
        (connection,) = server.listener._connections
        connection.transport.pause_reading()
        await fresh.send(get("/"))
        async with raw_http.connect(server.address, local=("127.1.0.1", 0)) as newcomer:
            assert_refused(await fresh.response(), "too many connections", status=503, code="service_unavailable")
            await newcomer.send(get("/"))
            assert (await newcomer.response()).status == 200


async def test_a_caller_that_does_not_read_its_answers_is_cut_off() -> None:
    limits = {"write_seconds": 0.1, "pipelined_requests": 10**6}
    async with served(**limits) as server, raw_http.connect(server.address) as connection:
        with contextlib.suppress(ConnectionError, TimeoutError):
            while True:
                await connection.send(get("/" + "a" * 5000) * 20)
        assert connection.writer.transport.is_closing()


async def test_a_refused_caller_can_finish_sending_and_read_why() -> None:
    async with served(head_bytes=1024) as server, raw_http.connect(server.address) as connection:
        await connection.send(get("/", "X: " + "a" * 2000))
        await connection.send(b"a" * 1_000_000)
        assert_refused(await connection.response(), "header fields")
        assert await connection.rest() == b""
