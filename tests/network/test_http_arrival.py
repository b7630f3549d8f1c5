"""A request that has arrived whole is answered in the next turn of the event loop; what follows it waits."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from postroad import errors
from postroad.network import listener
from postroad.network.http import http_messages, http_server
from tests.raw_http import get, post

T = TypeVar("T")
OK = b"HTTP/1.1 200 OK\r\n"


class Wire(asyncio.Transport):
    """A transport that keeps what is written; its client does not read while `is_full`."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1)})
        self.connection: http_server.HttpProtocol | None = None
        self.written: list[bytes] = []
        self.is_full = False
        self.is_paused = False
        self.ended = ""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))
        if self.is_full and self.connection is not None:
            self.connection.pause_writing()

    def is_closing(self) -> bool:
        return bool(self.ended)

    def close(self) -> None:
        self.ended = self.ended or "closed"

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.ended = "half-closed"

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class Conversation:
    """A connection without a socket, whose bytes arrive in callbacks of the loop, as those of a socket do."""

    def __init__(self, application: http_server.Application, **limits: int) -> None:
        self.shared = http_server.HttpListenerState(application, lambda error: (error.status, [], error.code.encode()))
        self.shared.date = b"date: now"
        self.wire = Wire()
        self.connection = self.wire.connection = http_server.HttpProtocol(
            self.shared,
            limits=http_messages.Limits(**limits),
            connections=listener.OpenConnections(total=1, per_address=1),
        )
        self.connection.connection_made(self.wire)

    async def receive(self, data: bytes) -> list[bytes]:
        """What is written by the end of the turn after the one that the bytes arrived in."""
        begun = len(self.wire.written)
        await in_callback(lambda: self.connection.data_received(data))
        await asyncio.sleep(0)
        return self.wire.written[begun:]

    def statuses(self) -> list[bytes]:
        """The statuses and the contents of all answers until now."""
        return [answer.split(b" ", 2)[1] + b" " + answer.rpartition(b"\r\n\r\n")[2] for answer in self.wire.written]


async def in_callback(call: Callable[[], T]) -> T:
    returned: list[T] = []
    asyncio.get_running_loop().call_soon(lambda: returned.append(call()))
    await asyncio.sleep(0)
    return returned[0]


async def settled() -> None:
    """Let everything run that can run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def echo(request: http_server.Request) -> None:
    body = request.whole_body()
    content = b"waits" if body is None else request.raw_path + b" " + body
    request.respond(200, [], content)


async def later(request: http_server.Request) -> None:
    await asyncio.sleep(0)
    await echo(request)


async def reading(request: http_server.Request) -> None:
    body, has_more = b"", True
    while has_more:
        part, has_more = await request.receive()
        body += part
    request.respond(200, [], request.raw_path + b" " + body)


@pytest.mark.parametrize("cut", [0, 40])
async def test_a_request_is_answered_in_the_turn_after_its_last_bytes(cut: int) -> None:
    conversation = Conversation(reading)
    stream = post("/a", b"body")
    if cut:
        assert await conversation.receive(stream[:-cut]) == []
    (answer,) = await conversation.receive(stream[-cut:])
    assert answer.startswith(OK)
    assert answer.endswith(b"/a body")
    assert conversation.shared.in_flight == set()


async def test_a_request_whose_head_came_first_is_answered_after_its_last_bytes() -> None:
    conversation = Conversation(reading)
    stream = post("/a", b"body")
    assert await conversation.receive(stream[:-1]) == []
    await conversation.receive(stream[-1:])
    assert conversation.statuses() == [b"200 /a body"]


async def test_an_application_that_waits_is_a_task_until_its_answer() -> None:
    conversation = Conversation(later)
    assert await conversation.receive(get("/a")) == []
    assert len(conversation.shared.in_flight) == 1
    await settled()
    assert conversation.statuses() == [b"200 /a "]
    assert conversation.shared.in_flight == set()


@pytest.mark.parametrize("application", [echo, later, reading])
async def test_pipelined_requests_are_answered_in_their_order(application: http_server.Application) -> None:
    conversation = Conversation(application)
    await conversation.receive(get("/1") + post("/2", b"two") + get("/3"))
    await settled()
    assert conversation.statuses() == [b"200 /1 ", b"200 /2 two", b"200 /3 "]
    assert not conversation.wire.is_paused
    await conversation.receive(get("/4"))
    await settled()
    assert conversation.statuses()[3:] == [b"200 /4 "]


@pytest.mark.parametrize("application", [echo, later])
async def test_as_many_as_may_be_pipelined_are_answered(application: http_server.Application) -> None:
    conversation = Conversation(application, pipelined_requests=4)
    await conversation.receive(b"".join(get(f"/{number}") for number in range(10)))
    await settled()
    assert conversation.statuses() == [b"200 /%d " % number for number in range(5)]
    assert conversation.wire.ended


@pytest.mark.parametrize("application", [echo, later])
@pytest.mark.parametrize("behind", [b"\0", b"GET / HTTP/1.1\r\n\r\n", get("/", "Host: y")])
async def test_what_is_malformed_behind_a_request_does_not_cost_it_its_answer(
    application: http_server.Application, behind: bytes
) -> None:
    conversation = Conversation(application)
    await conversation.receive(get("/good") + behind)
    await settled()
    assert conversation.statuses() == [b"200 /good "]
    assert b"connection: close" in conversation.wire.written[0]
    assert conversation.wire.ended


async def test_what_is_malformed_after_an_answer_is_refused() -> None:
    conversation = Conversation(echo)
    await conversation.receive(get("/good"))
    await conversation.receive(b"\0")
    assert conversation.statuses() == [b"200 /good ", b"400 invalid_request"]
    assert conversation.wire.ended


async def test_a_body_that_is_malformed_in_the_bytes_of_its_head_has_no_application() -> None:
    begun: list[http_server.Request] = []

    async def application(request: http_server.Request) -> None:
        begun.append(request)
        await reading(request)

    conversation = Conversation(application)
    chunked = b"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnonsense\r\n"
    await conversation.receive(chunked)
    await settled()
    assert conversation.statuses() == [b"400 invalid_request"]
    assert conversation.shared.in_flight == set()
    for request in begun:
        with pytest.raises(http_server.Disconnected):
            await request.receive()


async def test_no_request_begins_while_the_client_does_not_read_its_answers() -> None:
    conversation = Conversation(echo)
    conversation.wire.is_full = True
    await conversation.receive(get("/1") + get("/2"))
    await settled()
    await conversation.receive(get("/3"))
    await settled()
    assert conversation.statuses() == [b"200 /1 "]
    for count in (2, 3):
        conversation.connection.resume_writing()
        await settled()
        assert len(conversation.wire.written) == count
    assert conversation.statuses() == [b"200 /1 ", b"200 /2 ", b"200 /3 "]


async def test_a_client_that_disconnects_ends_its_waiting_response() -> None:
    conversation = Conversation(echo)
    conversation.wire.is_full = True
    await conversation.receive(get("/1") + get("/2"))
    await settled()
    assert len(conversation.shared.in_flight) == 1
    conversation.connection.connection_lost(None)
    await settled()
    assert conversation.shared.in_flight == set()
    assert conversation.statuses() == [b"200 /1 "]


async def test_the_first_step_of_an_application_may_fail() -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context["exception"]))
    problem = ZeroDivisionError()

    async def application(_request: http_server.Request) -> None:
        raise problem

    conversation = Conversation(application)
    (answer,) = await conversation.receive(get("/"))
    assert answer.endswith(errors.InternalError.code.encode())
    assert problems == [problem]
    assert conversation.shared.in_flight == set()


@pytest.mark.parametrize("has_turned", [True, False])
async def test_an_application_that_is_cancelled_is_answered_for(has_turned: bool) -> None:  # noqa: FBT001
    """Also when the loop has not turned since it began: a stop may come in the same turn."""
    heard: list[str] = []

    async def application(_request: http_server.Request) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    conversation = Conversation(application)

    def arrive_and_stop() -> None:
        conversation.connection.data_received(get("/"))
        if not has_turned:
            for exchange in conversation.shared.in_flight:
                exchange.cancel()

    await in_callback(arrive_and_stop)
    await settled()
    for exchange in conversation.shared.in_flight:
        exchange.cancel()
    await settled()
    assert heard == ["cancelled"]
    assert conversation.statuses() == [b"503 service_unavailable"]
    assert conversation.shared.in_flight == set()
