"""An exchange gives the application the two ends of ASGI, and the connection one write for an ordinary response."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from postroad import errors
from postroad.network.http import http_server
from tests import raw_http

Message = http_server.Message
START: Message = {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
STREAM: Message = {"type": "http.response.start", "status": 200, "headers": []}


def body(content: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": content, "more_body": more}


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
        self.has_waiting = False
        self.kept: list[bool] = []
        self.takes = 0

    def answered(self, *, keep_alive: bool) -> None:
        self.kept.append(keep_alive)

    def body_consumed(self) -> None:
        self.takes += 1


class Running:
    """An application under way in an exchange."""

    def __init__(self, application: Any, **request: Any) -> None:  # noqa: ANN401 - as ASGI has it
        self.shared = http_server.HttpListenerState(application, lambda error: (error.status, [], error.code.encode()))
        self.shared.date = b"date: now"
        self.shared.changed = asyncio.Event()
        self.connection = Connection()
        self.problems: list[Any] = []
        scope = {"method": request.pop("method", "POST"), "http_version": request.pop("version", "1.1")}
        facts = {"keep_alive": True, "expects_continue": False, **request}
        self.exchange = http_server.Exchange(self.shared, self.connection, scope, **facts)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: self.problems.append(context["exception"]))
        self.exchange.start(loop)

    @property
    def written(self) -> list[bytes]:
        return self.connection.recorded.written

    async def end(self) -> None:
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            while self.shared.in_flight:
                assert self.shared.changed is not None
                await self.shared.changed.wait()


async def settled() -> None:
    """Let everything run that can run."""
    for _ in range(5):
        await asyncio.sleep(0)


def sends(*messages: Message) -> Any:  # noqa: ANN401 - as ASGI has it
    async def application(_scope: object, _receive: object, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        for message in messages:
            await send(message)

    return application


async def test_an_ordinary_response_is_one_write() -> None:
    running = Running(sends(START, body(b"ok")))
    await running.end()
    assert running.written == [b"HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 2\r\n\r\nok"]
    assert running.connection.kept == [True]


async def test_nothing_is_written_before_the_first_part_of_the_body() -> None:
    go_on = asyncio.Event()

    async def application(_scope: object, _receive: object, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        await send(START)
        await go_on.wait()
        await send(body(b"ok"))

    running = Running(application)
    await settled()
    assert running.written == []
    go_on.set()
    await running.end()
    assert len(running.written) == 1


async def test_a_stream_leaves_part_by_part_in_chunks() -> None:
    running = Running(sends(STREAM, body(b"", more=True), body(b"abc", more=True), body(b"x" * 16)))
    await running.end()
    assert running.written[0].endswith(b"transfer-encoding: chunked\r\n\r\n")
    assert running.written[1:] == [b"3\r\nabc\r\n", b"10\r\n" + b"x" * 16 + b"\r\n0\r\n\r\n"]


async def test_a_stream_to_http_1_0_ends_with_the_connection() -> None:
    running = Running(sends(STREAM, body(b"abc", more=True), body(b"")), version="1.0", keep_alive=False)
    await running.end()
    assert b"chunked" not in running.written[0]
    assert running.written[0].endswith(b"connection: close\r\n\r\nabc")
    assert running.connection.kept == [False]


async def test_the_length_of_a_whole_answer_is_added() -> None:
    running = Running(sends(STREAM, body(b"abc")))
    await running.end()
    assert running.written[0].endswith(b"content-length: 3\r\n\r\nabc")


async def test_header_fields_may_come_from_anything_that_can_be_walked() -> None:
    def fields() -> Iterator[list[bytes]]:
        yield [b"content-length", b"2"]
        yield [b"x", b"y"]

    running = Running(sends({**START, "headers": fields()}, body(b"ok")))
    await running.end()
    assert running.written[0].endswith(b"content-length: 2\r\nx: y\r\n\r\nok")


async def test_head_is_answered_without_content() -> None:
    running = Running(sends(START, body(b"ok")), method="HEAD")
    await running.end()
    assert running.written[0].endswith(b"content-length: 2\r\n\r\n")


async def test_a_body_is_received_in_the_parts_that_came() -> None:
    received: list[Message] = []

    async def application(_scope: object, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        while not received or received[-1].get("more_body"):
            received.append(await receive())
        await sends(START, body(b"ok"))(None, None, send)

    running = Running(application)
    running.exchange.feed(b"a")
    running.exchange.feed(b"b")
    await settled()
    running.exchange.feed(b"c")
    await settled()
    running.exchange.end_body()
    await running.end()
    assert [(message["body"], message["more_body"]) for message in received] == [
        (b"ab", True),
        (b"c", True),
        (b"", False),
    ]
    assert running.connection.takes == 3
    assert running.exchange.buffered == 0


async def test_continue_is_said_once_to_who_waits_for_it() -> None:
    async def application(_scope: object, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        while (await receive())["more_body"]:
            pass
        await sends(START, body(b"ok"))(None, None, send)

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
    running = Running(sends(START, body(b"no")), expects_continue=True)
    await running.end()
    assert b"100 Continue" not in b"".join(running.written)
    assert b"connection: close" in running.written[0]
    assert running.connection.kept == [False]


async def test_a_body_that_did_not_wait_needs_no_word() -> None:
    running = Running(sends(START, body(b"ok")), expects_continue=True)
    running.exchange.feed(b"a")
    await running.end()
    assert running.connection.kept == [True]


@pytest.mark.parametrize("end", ["gone", "answered"])
async def test_who_waits_for_the_end_hears_of_it(end: str) -> None:
    heard = asyncio.Event()

    async def application(_scope: object, receive: Any, send: Any) -> None:  # noqa: ANN401 - as ASGI has it
        assert (await receive())["type"] == "http.request"
        waiting = asyncio.create_task(receive())
        await settled()
        if end == "answered":
            await sends(START, body(b"ok"))(None, None, send)
        assert (await waiting)["type"] == "http.disconnect"
        await send(START if end == "gone" else {"type": "http.response.body"})
        heard.set()

    running = Running(application)
    running.exchange.end_body()
    await settled()
    if end == "gone":
        running.exchange.disconnect()
    await running.end()
    assert heard.is_set() == (end == "gone")
    assert running.written == ([] if end == "gone" else [running.written[0]])


async def test_send_waits_while_the_caller_does_not_read() -> None:
    running = Running(sends(STREAM, body(b"a", more=True), body(b"b")))
    full = running.connection.unwritable = asyncio.Event()
    await settled()
    assert running.written == []
    running.connection.unwritable = None
    full.set()
    await running.end()
    assert len(running.written) == 2


async def test_a_caller_that_goes_frees_who_waits_to_send() -> None:
    running = Running(sends(STREAM, body(b"a")))
    full = running.connection.unwritable = asyncio.Event()
    await settled()
    running.exchange.disconnect()
    full.set()
    await running.end()
    assert running.written == []
    assert running.problems == []


@pytest.mark.parametrize(
    "messages",
    [
        (),
        (START,),
        (body(b"ok"),),
        (START, START),
        (START, body(b"o")),
        (START, body(b"too long")),
        (START, {"type": "http.response.trailers"}),
        ({**START, "headers": [(b"x", b"a\r\nset-cookie: b")]}, body(b"ok")),
        ({**START, "headers": [(b"content-length", b"two")]}, body(b"ok")),
    ],
)
async def test_an_application_that_breaks_the_rules_is_answered_for(messages: tuple[Message, ...]) -> None:
    running = Running(sends(*messages))
    await running.end()
    assert len(running.problems) == 1
    assert len(running.written) == 1
    assert running.written[0].startswith(b"HTTP/1.1 500 ")
    assert running.written[0].endswith(b"\r\n\r\n" + errors.InternalError.code.encode())
    assert running.connection.kept == [False]


@pytest.mark.parametrize("messages", [(), (body(b"bc"),)])
async def test_half_an_answer_does_not_look_like_a_whole_one(messages: tuple[Message, ...]) -> None:
    running = Running(sends(START, body(b"a", more=True), *messages))
    await running.end()
    assert len(running.problems) == 1
    assert running.connection.recorded.closed
    assert running.written == [running.written[0]]


async def test_a_log_that_fails_leaves_no_caller_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(sends(START, body(b"a", more=True)))
    monkeypatch.setattr(asyncio.get_running_loop(), "call_exception_handler", lambda _context: 1 / 0)
    await running.end()
    monkeypatch.undo()
    assert running.connection.recorded.closed


async def test_what_follows_the_end_of_a_response_is_a_bug_and_changes_nothing() -> None:
    running = Running(sends(START, body(b"ok"), body(b"more")))
    await running.end()
    assert len(running.problems) == 1
    assert len(running.written) == 1
    assert running.connection.kept == [True]


async def test_a_cancelled_application_that_says_nothing_is_answered_as_unavailable() -> None:
    async def application(_scope: object, _receive: object, _send: object) -> None:
        await asyncio.Event().wait()

    running = Running(application)
    await settled()
    running.exchange.cancel()
    await running.end()
    assert running.written[0].startswith(b"HTTP/1.1 503 ")
    assert running.problems == []
