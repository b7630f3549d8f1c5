"""A connection gives each request its turn: answers in order, streams at the caller's pace, and an orderly end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad import errors
from postroad.network import listener
from postroad.network.http import http_messages, http_server
from tests import passing_time, raw_http
from tests.raw_http import get, post

PART = b"x" * 100_000


class Streaming:
    """An application with a few manners of answering, chosen by the path."""

    def __init__(self) -> None:
        self.requests: list[http_server.Request] = []
        self.go_on = asyncio.Event()
        self.heard_of_the_end = asyncio.Event()
        self.parts = 0

    async def __call__(self, request: http_server.Request) -> None:
        self.requests.append(request)
        if request.raw_path == b"/endless":
            await self.stream(request)
            return
        if request.raw_path == b"/wait":
            waiting = asyncio.create_task(self.go_on.wait())
            listening = asyncio.create_task(request.until_disconnected())
            await asyncio.wait((waiting, listening), return_when=asyncio.FIRST_COMPLETED)
            if listening.done():
                self.heard_of_the_end.set()
            for task in (waiting, listening):
                task.cancel()
        request.respond(200, [(b"content-length", b"4")], b"done")

    async def stream(self, request: http_server.Request) -> None:
        request.respond(200, [], b"", has_more=True)
        while not self.go_on.is_set():
            await request.send(PART, has_more=True)
            self.parts += 1
            await asyncio.sleep(0)
        await request.send(b"", has_more=False)


def refuse(error: errors.PostroadError) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return error.status, [], error.message.encode()


@contextlib.asynccontextmanager
async def serving(application: Streaming, **limits: Any) -> AsyncIterator[http_server.HttpListener]:
    listener = http_server.HttpListener(
        application, refuse=refuse, limits=http_messages.Limits(**limits), sweep_seconds=0.02
    )
    await listener.start("127.0.0.1", 0)
    try:
        yield listener
    finally:
        application.go_on.set()
        await listener.stop(grace_seconds=5)


@pytest.fixture
async def application() -> Streaming:
    return Streaming()


async def stands_still(application: Streaming) -> int:
    """The number of parts that were sent, once it has stopped growing for a while."""
    async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
        before = -1
        while before != application.parts or not application.parts:
            before = application.parts
            await asyncio.sleep(0.1)
    return before


async def test_the_request_says_what_was_sent_and_by_whom(application: Streaming) -> None:
    async with serving(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/a%20b?c=d", "X-Y: Z"))
        await connection.response()
        client = connection.writer.get_extra_info("sockname")
    (request,) = application.requests
    assert request.method == "GET"
    assert (request.raw_path, request.query) == (b"/a%20b", b"c=d")
    assert request.headers == [(b"host", b"postroad.test"), (b"x-y", b"Z")]
    assert request.peer == client[0]
    assert (request.account_id, request.is_delayed) == (None, False)


async def test_a_stream_goes_at_the_callers_pace_and_the_connection_is_kept(application: Streaming) -> None:
    async with serving(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/endless"))
        still = await stands_still(application)
        application.go_on.set()
        head = await connection.response(has_body=False)
        assert head.headers["transfer-encoding"] == "chunked"
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            received = 0
            while size := int(await connection.reader.readline(), 16):
                assert await connection.reader.readexactly(size + 2) == PART + b"\r\n"
                received += 1
            assert await connection.reader.readline() == b"\r\n"
        assert received == application.parts <= still + 1
        await connection.send(get("/next"))
        assert (await connection.response()).body == b"done"


async def test_who_stops_reading_a_stream_is_cut_off_and_the_application_freed(application: Streaming) -> None:
    async with serving(application, write_seconds=60) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/endless"))
        still = await stands_still(application)
        for seconds in (0, 61):
            passing_time.pass_seconds(listener, seconds)
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            while application.parts <= still:
                await asyncio.sleep(0.01)
        application.go_on.set()
        assert not (await connection.rest()).endswith(b"\r\n0\r\n\r\n")


class Slow(asyncio.Transport):
    """A transport to somebody who reads slowly."""

    aborted = False

    def is_closing(self) -> bool:
        return self.aborted

    def abort(self) -> None:
        self.aborted = True


async def test_who_reads_slowly_is_served_and_who_does_not_read_is_not(application: Streaming) -> None:
    limits = http_messages.Limits(write_seconds=60)
    connection = http_server.HttpProtocol(
        http_server.HttpListenerState(application, refuse),
        limits=limits,
        connections=listener.OpenConnections(total=1, per_address=1),
    )
    connection.connection_made(Slow())
    for now in range(0, 600, 50):
        # Whoever sweeps always meets one that has not read yet: what it has read was followed by more at once.
        connection.pause_writing()
        connection.sweep(now)
        connection.sweep(now + 49)
        connection.resume_writing()
    assert not connection.transport.is_closing()
    connection.pause_writing()
    connection.sweep(1000)
    connection.sweep(1059)
    assert not connection.transport.is_closing()
    connection.sweep(1060)
    assert connection.transport.is_closing()


async def test_the_application_hears_that_its_caller_has_gone(application: Streaming) -> None:
    async with serving(application) as listener:
        async with raw_http.connect(listener.address) as connection:
            await connection.send(get("/wait"))
            while not application.requests:
                await asyncio.sleep(0.01)
        await asyncio.wait_for(application.heard_of_the_end.wait(), raw_http.TIMEOUT_SECONDS)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_the_last_request_of_a_connection_is_answered_and_what_follows_is_not_read(
    version: str, application: Streaming
) -> None:
    request = f"GET /wait HTTP/{version}\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    async with serving(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(request + get("/more") * 3)
        application.go_on.set()
        response = await connection.response()
        assert (response.body, response.headers["connection"]) == (b"done", "close")
        assert await connection.rest() == b""
        assert [request.raw_path for request in application.requests] == [b"/wait"]


async def test_http_1_0_is_answered_and_let_go(application: Streaming) -> None:
    async with serving(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert (await connection.response()).headers["connection"] == "close"
        assert await connection.rest() == b""


async def test_a_last_request_that_is_answered_early_may_be_sent_to_its_end(application: Streaming) -> None:
    async with serving(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(post("/unread", b"", "Connection: close", length=10_000_000))
        assert (await connection.response()).body == b"done"
        await connection.send(b"a" * 10_000_000)
        assert await connection.rest() == b""


async def test_a_broken_body_in_the_queue_does_not_cost_those_before_it_their_answers(application: Streaming) -> None:
    broken = b"POST /broken HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"
    async with serving(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/wait") + get("/second") + broken)
        application.go_on.set()
        assert "connection" not in (await connection.response()).headers
        assert (await connection.response()).headers["connection"] == "close"
        assert await connection.rest() == b""
        assert [request.raw_path for request in application.requests] == [b"/wait", b"/second"]


async def test_time_in_the_queue_is_not_the_callers(application: Streaming) -> None:
    async with (
        serving(application, head_seconds=30, body_seconds=30) as listener,
        raw_http.connect(listener.address) as connection,
    ):
        await connection.send(get("/wait") + get("/second") + b"GET /third HTTP/1.1\r\n")
        await passing_time.until_one(listener, lambda connection: connection.paused_at is not None)
        passing_time.pass_seconds(listener, 31)
        application.go_on.set()
        await connection.send(b"Host: x\r\n\r\n")
        for _ in range(3):
            assert (await connection.response()).body == b"done"


async def test_a_body_that_nobody_takes_is_not_read_without_end(application: Streaming) -> None:
    async with serving(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/wait") + post("/unread", b"", length=10**9))
        sending = asyncio.create_task(connection.send(b"a" * 64_000_000))  # more than any socket holds
        await asyncio.wait((sending,), timeout=0.5)
        assert not sending.done()
        connection.writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await sending
