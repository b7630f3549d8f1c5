"""An exchange gives the application a request and takes its answer; an ordinary answer is one write."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from postroad import errors
from postroad.network.http import http_messages, http_server
from tests import raw_http

LENGTH = [(b"content-length", b"2")]


class Transport:
    """What was written, write by write."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.closed = True


class Connection:
    """A connection that records what is written."""

    def __init__(self) -> None:
        self.recorded = Transport()
        self.transport = cast("asyncio.Transport", self.recorded)
        self.unwritable: asyncio.Event | None = None
        self.paused_at: float | None = 0.0
        self.has_waiting = False
        self.kept: list[bool] = []
        self.takes = 0

    def responded(self, *, keep_alive: bool) -> None:
        self.kept.append(keep_alive)

    def body_consumed(self) -> None:
        self.takes += 1


class Running:
    """An application under way in an exchange."""

    def __init__(
        self,
        application: http_server.Application,
        *,
        content: bytes = b"",
        is_complete: bool = False,
        **head: Any,
    ) -> None:
        self.shared = http_server.HttpListenerState(application, lambda error: (error.status, [], error.code.encode()))
        self.shared.date = b"date: now"
        self.shared.changed = asyncio.Event()
        self.connection = Connection()
        self.problems: list[Any] = []
        self.exchange = http_server.Exchange(
            self.shared,
            self.connection,
            http_messages.Head(
                **{
                    "method": b"POST",
                    "path": b"/",
                    "query": b"",
                    "version": "1.1",
                    "headers": [],
                    "keep_alive": True,
                    "expects_continue": False,
                    **head,
                }
            ),
            content,
            is_complete=is_complete,
            peer="192.0.2.1",
        )
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: self.problems.append(context["exception"]))
        self.exchange.start(loop)

    @property
    def written(self) -> list[bytes]:
        return self.connection.recorded.written

    async def end(self) -> None:
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            await asyncio.sleep(0)  # it begins then
            while self.shared.in_flight:
                assert self.shared.changed is not None
                await self.shared.changed.wait()


async def settled() -> None:
    """Let everything run that can run."""
    for _ in range(5):
        await asyncio.sleep(0)


def answers(*parts: bytes, fields: list[http_messages.Field] | None = None) -> http_server.Application:
    """An application that answers in these parts."""

    async def application(request: http_server.Request) -> None:
        request.respond(200, fields or [], parts[0], has_more=len(parts) > 1)
        for number, part in enumerate(parts[1:], 2):
            await request.send(part, has_more=number < len(parts))

    return application


ok = answers(b"ok", fields=LENGTH)


async def test_an_ordinary_response_is_one_write() -> None:
    running = Running(ok)
    await running.end()
    assert running.written == [b"HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 2\r\n\r\nok"]
    assert running.connection.kept == [True]


async def test_a_stream_leaves_part_by_part_in_chunks() -> None:
    running = Running(answers(b"", b"abc", b"x" * 16))
    await running.end()
    assert running.written[0].endswith(b"transfer-encoding: chunked\r\n\r\n")
    assert running.written[1:] == [b"3\r\nabc\r\n", b"10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"]


async def test_a_stream_to_http_1_0_ends_with_the_connection() -> None:
    running = Running(answers(b"abc", b""), version="1.0", keep_alive=False)
    await running.end()
    assert b"chunked" not in running.written[0]
    assert running.written[0].endswith(b"connection: close\r\n\r\nabc")
    assert running.connection.kept == [False]


async def test_the_length_of_a_whole_answer_is_added() -> None:
    running = Running(answers(b"abc"))
    await running.end()
    assert running.written[0].endswith(b"content-length: 3\r\n\r\nabc")


async def test_head_is_answered_without_content() -> None:
    running = Running(ok, method=b"HEAD")
    await running.end()
    assert running.written[0].endswith(b"content-length: 2\r\n\r\n")


async def test_the_last_answer_while_draining_ends_the_connection() -> None:
    for has_waiting in (True, False):
        running = Running(ok)
        running.shared.is_draining = True
        running.connection.has_waiting = has_waiting
        await running.end()
        assert running.connection.kept == [has_waiting]
        assert (b"connection: close" in running.written[0]) is not has_waiting


async def test_a_body_is_received_in_the_parts_that_came() -> None:
    received: list[tuple[bytes, bool]] = []

    async def application(request: http_server.Request) -> None:
        while not received or received[-1][1]:
            received.append(await request.receive())
        await ok(request)

    running = Running(application)
    running.exchange.feed(b"a")
    running.exchange.feed(b"b")
    await settled()
    running.exchange.feed(b"c")
    await settled()
    running.exchange.end_body()
    await running.end()
    assert received == [(b"ab", True), (b"c", True), (b"", False)]
    assert running.connection.takes == 3
    assert running.exchange.buffered == 0


@pytest.mark.parametrize("content", [b"", b"whole"])
async def test_a_body_that_is_there_is_taken_without_waiting_and_once(content: bytes) -> None:
    taken: list[bytes | None] = []

    async def application(request: http_server.Request) -> None:
        taken.extend((request.whole_body(), request.whole_body()))
        await ok(request)

    running = Running(application, content=content, is_complete=True)
    await running.end()
    assert taken == [content, None]
    assert running.connection.takes == 1
    assert running.exchange.buffered == 0


async def test_a_body_of_which_some_is_awaited_is_not_whole() -> None:
    taken: list[bytes | None] = []
    received: list[tuple[bytes, bool]] = []

    async def application(request: http_server.Request) -> None:
        taken.append(request.whole_body())
        await settled()
        taken.append(request.whole_body())
        received.append(await request.receive())
        taken.append(request.whole_body())
        await ok(request)

    running = Running(application, content=b"ab")
    await settled()
    running.exchange.feed(b"c")
    await settled()
    await settled()
    running.exchange.end_body()
    await running.end()
    assert taken[:2] == [None, None]
    assert received == [(b"abc", True)]


async def test_the_body_of_a_client_that_is_gone_is_dropped() -> None:
    taken: list[bytes | None] = []

    async def application(request: http_server.Request) -> None:
        await settled()
        taken.append(request.whole_body())
        with pytest.raises(http_server.Disconnected):
            await request.receive()
        await request.until_disconnected()

    running = Running(application, content=b"ab", is_complete=True)
    running.exchange.disconnect()
    await running.end()
    assert taken == [None]
    assert running.problems == []


async def test_continue_is_said_once_to_who_waits_for_it() -> None:
    async def application(request: http_server.Request) -> None:
        has_more = True
        while has_more:
            _, has_more = await request.receive()
        await ok(request)

    running = Running(application, expects_continue=True)
    await settled()
    assert running.written == [b"HTTP/1.1 100 Continue\r\n\r\n"]
    running.exchange.feed(b"a")
    await settled()
    running.exchange.end_body()
    await running.end()
    assert len(running.written) == 2
    assert running.connection.kept == [True]


async def test_a_body_that_waits_in_vain_ends_the_connection() -> None:
    running = Running(ok, expects_continue=True)
    await running.end()
    assert b"100 Continue" not in b"".join(running.written)
    assert b"connection: close" in running.written[0]
    assert running.connection.kept == [False]


@pytest.mark.parametrize("is_later", [True, False])
async def test_a_body_that_has_arrived_needs_no_100_continue(is_later: bool) -> None:  # noqa: FBT001
    running = Running(ok, expects_continue=True, content=b"" if is_later else b"a")
    if is_later:
        running.exchange.feed(b"a")
    await running.end()
    assert running.connection.kept == [True]


@pytest.mark.parametrize("end", ["gone", "answered"])
async def test_who_waits_for_the_end_hears_of_it(end: str) -> None:
    heard = asyncio.Event()

    async def application(request: http_server.Request) -> None:
        assert await request.receive() == (b"", False)
        waiting = [asyncio.create_task(request.until_disconnected()), asyncio.create_task(request.receive())]
        await settled()
        assert not any(task.done() for task in waiting)
        if end == "answered":
            await ok(request)
        await waiting[0]
        with pytest.raises(http_server.Disconnected):
            await waiting[1]
        if end == "gone":
            await ok(request)
        await request.send(b"", has_more=False)
        heard.set()

    running = Running(application)
    running.exchange.end_body()
    await settled()
    if end == "gone":
        running.exchange.disconnect()
    await running.end()
    assert heard.is_set() == (end == "gone")
    assert len(running.problems) == (end == "answered")
    assert running.written == ([] if end == "gone" else [running.written[0]])


async def test_nothing_begins_while_the_caller_does_not_read() -> None:
    running = Running(answers(b"a", b"b"))
    full = running.connection.unwritable = asyncio.Event()
    await settled()
    assert running.written == []
    running.connection.unwritable = None
    full.set()
    await running.end()
    assert len(running.written) == 2


async def test_send_waits_while_the_caller_does_not_read() -> None:
    running = Running(answers(b"a", b"b"))
    full = asyncio.Event()

    def write(data: bytes) -> None:
        running.written.append(data)
        running.connection.unwritable = None if full.is_set() else full

    running.connection.recorded.write = write  # type: ignore[method-assign]
    await settled()
    assert len(running.written) == 1
    running.connection.unwritable = None
    full.set()
    await running.end()
    assert len(running.written) == 2


async def test_a_caller_that_goes_frees_who_waits_to_send() -> None:
    running = Running(answers(b"a", b""))
    full = running.connection.unwritable = asyncio.Event()
    await settled()
    running.exchange.disconnect()
    full.set()
    await running.end()
    assert running.written == []
    assert running.problems == []


async def nothing(_request: http_server.Request) -> None:
    pass


async def no_beginning(request: http_server.Request) -> None:
    await request.send(b"ok", has_more=False)


@pytest.mark.parametrize(
    "application",
    [
        nothing,
        no_beginning,
        answers(b"o", fields=LENGTH),
        answers(b"too long", fields=LENGTH),
        answers(b"ok", fields=[*LENGTH, (b"x", b"a\r\nset-cookie: b")]),
        answers(b"ok", fields=[(b"content-length", b"two")]),
    ],
)
async def test_an_application_that_breaks_the_rules_is_answered_for(application: http_server.Application) -> None:
    running = Running(application)
    await running.end()
    assert len(running.problems) == 1
    assert len(running.written) == 1
    assert running.written[0].startswith(b"HTTP/1.1 500 ")
    assert running.written[0].endswith(b"\r\n\r\n" + errors.InternalError.code.encode())
    assert running.connection.kept == [False]


async def half(request: http_server.Request) -> None:
    request.respond(200, LENGTH, b"a", has_more=True)


async def begun_again(request: http_server.Request) -> None:
    await half(request)
    request.respond(200, LENGTH, b"ok")


@pytest.mark.parametrize("application", [half, begun_again, answers(b"a", b"bc", fields=LENGTH)])
async def test_half_an_answer_does_not_look_like_a_whole_one(application: http_server.Application) -> None:
    running = Running(application)
    await running.end()
    assert len(running.problems) == 1
    assert running.connection.recorded.closed
    assert running.written == [running.written[0]]


async def test_a_log_that_fails_leaves_no_caller_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(half)
    monkeypatch.setattr(asyncio.get_running_loop(), "call_exception_handler", lambda _context: 1 / 0)
    await running.end()
    monkeypatch.undo()
    assert running.connection.recorded.closed


@pytest.mark.parametrize("again", [lambda request: request.send(b"more", has_more=False), ok])
async def test_what_follows_the_end_of_a_response_is_a_bug_and_changes_nothing(again: Callable[..., Any]) -> None:
    async def application(request: http_server.Request) -> None:
        await ok(request)
        await again(request)

    running = Running(application)
    await running.end()
    assert len(running.problems) == 1
    assert len(running.written) == 1
    assert running.connection.kept == [True]


async def test_a_cancelled_application_that_says_nothing_is_answered_as_unavailable() -> None:
    async def application(_request: http_server.Request) -> None:
        await asyncio.Event().wait()

    running = Running(application)
    await settled()
    running.exchange.cancel()
    await running.end()
    assert running.written[0].startswith(b"HTTP/1.1 503 ")
    assert running.problems == []
