"""The listener binds where it is told, serves inside the caller's loop, and stops in order."""

import asyncio
import contextlib
import email.utils
import signal
import socket
from collections.abc import AsyncIterator

import pytest

from postroad import errors
from postroad.network.http import http_server
from tests import raw_http
from tests.raw_http import get, post


def refuse(error: errors.PostroadError) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return error.status, [(b"content-length", b"0")], b""


class Slow:
    """An application that answers when it is told to."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.go_on = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.peers: list[str] = []

    async def __call__(self, request: http_server.Request) -> None:
        self.peers.append(request.peer)
        self.started.set()
        text = b"done"
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            text = b"late"
        request.respond(200, [(b"content-length", b"4")], text)


@contextlib.asynccontextmanager
async def listening(application: http_server.Application) -> AsyncIterator[http_server.HttpListener]:
    listener = http_server.HttpListener(application, refuse=refuse, sweep_seconds=0.02)
    await listener.start("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.stop(grace_seconds=0)


async def refused(address: tuple[str, int]) -> None:
    """Wait until nobody listens there: a loop closes its sockets soon, not at once."""
    async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
        with contextlib.suppress(ConnectionError):
            while True:
                async with raw_http.connect(address) as late:
                    await late.rest()


async def test_port_0_takes_a_free_port_and_reports_it() -> None:
    async with listening(Slow()) as listener:
        host, port = listener.address
        assert host == "127.0.0.1"
        assert port > 0


async def test_an_address_that_is_taken_is_an_error_of_the_caller() -> None:
    async with listening(Slow()) as first:
        second = http_server.HttpListener(Slow(), refuse=refuse)
        with pytest.raises(OSError, match="in use"):
            await second.start(*first.address)
        with pytest.raises(RuntimeError):
            second.address  # noqa: B018 - asking is the test
        await second.stop(grace_seconds=0)


async def test_an_ipv6_address_is_served() -> None:
    listener = http_server.HttpListener(Slow(), refuse=refuse)
    try:
        await listener.start("::1", 0)
    except OSError:
        pytest.skip("this machine has no IPv6")
    assert listener.address[0] == "::1"
    await listener.stop(grace_seconds=0)


async def test_responses_say_when_but_not_by_what() -> None:
    application = Slow()
    application.go_on.set()
    async with listening(application) as listener:
        response = await raw_http.exchange(listener.address, get("/"))
    assert email.utils.parsedate_to_datetime(response.headers["date"]).tzinfo is not None
    assert "server" not in response.headers


async def test_a_caller_cannot_choose_its_address() -> None:
    application = Slow()
    application.go_on.set()
    async with listening(application) as listener:
        await raw_http.exchange(listener.address, get("/", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https"))
    assert application.peers == ["127.0.0.1"]


async def test_signals_stay_the_callers() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    async with listening(Slow()):
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


async def test_stopping_finishes_what_is_under_way() -> None:
    application = Slow()
    async with listening(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/"))
        await application.started.wait()
        stopping = asyncio.create_task(listener.stop(grace_seconds=raw_http.TIMEOUT_SECONDS))
        await refused(listener.address)
        assert not stopping.done()
        application.go_on.set()
        response = await connection.response()
        assert response.body == b"done"
        assert response.headers["connection"] == "close"
        await stopping


async def test_stopping_waits_for_the_first_request_of_a_new_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "FIRST_REQUEST_SECONDS", raw_http.TIMEOUT_SECONDS)
    application = Slow()
    application.go_on.set()
    async with listening(application) as listener, raw_http.connect(listener.address) as connection:
        while not listener._connections:  # until it is accepted
            await asyncio.sleep(0)
        stopping = asyncio.create_task(listener.stop(grace_seconds=raw_http.TIMEOUT_SECONDS))
        await asyncio.sleep(0)
        await connection.send(get("/"))
        assert (await connection.response()).body == b"done"
        await stopping


async def test_stopping_closes_idle_connections_at_once() -> None:
    application = Slow()
    application.go_on.set()
    async with listening(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/"))
        await connection.response()
        await listener.stop(grace_seconds=raw_http.TIMEOUT_SECONDS)
        assert await connection.rest() == b""


async def test_stopping_answers_a_request_that_has_arrived_on_an_idle_connection() -> None:
    application = Slow()
    application.go_on.set()
    async with listening(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/"))
        await connection.response()
        # Both happen before the event loop reads again.
        connection.writer.write(get("/"))
        await listener.stop(grace_seconds=raw_http.TIMEOUT_SECONDS)
        assert (await connection.response()).headers["connection"] == "close"
        assert await connection.rest() == b""


async def test_stopping_waits_for_work_whose_caller_has_gone() -> None:
    application = Slow()
    async with listening(application) as listener:
        async with raw_http.connect(listener.address) as connection:
            await connection.send(get("/"))
            await application.started.wait()
        stopping = asyncio.create_task(listener.stop(grace_seconds=raw_http.TIMEOUT_SECONDS))
        await asyncio.sleep(0.05)
        assert not stopping.done()
        application.go_on.set()
        await stopping
    assert not application.cancelled.is_set()


async def test_the_end_of_the_grace_time_cancels_and_still_lets_the_answer_out() -> None:
    application = Slow()
    async with listening(application) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(get("/"))
        await application.started.wait()
        await listener.stop(grace_seconds=0.05)
        assert application.cancelled.is_set()
        assert (await connection.response()).body == b"late"
        assert await connection.rest() == b""


async def test_the_end_of_the_grace_time_cuts_who_is_still_sending() -> None:
    application = Slow()
    application.go_on.set()

    async def read_all(request: http_server.Request) -> None:
        with contextlib.suppress(http_server.Disconnected):
            while True:
                await request.receive()

    async with listening(read_all) as listener, raw_http.connect(listener.address) as connection:
        await connection.send(post("/", b"half", length=8))
        await asyncio.sleep(0.05)
        await listener.stop(grace_seconds=0.05)
        assert b"200" not in await connection.rest()


async def test_the_port_is_free_after_stopping() -> None:
    async with listening(Slow()) as listener:
        address = listener.address
        await listener.stop(grace_seconds=1)
        await refused(address)
        with socket.create_server(address):
            pass
