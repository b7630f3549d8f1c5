"""Getting a policy: a valid certificate, a whole and short response, in time, or a reason in words."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from postroad.network.http import https_get
from tests import https_server
from tests.https_server import response

HOST = "mta-sts.example.org"
TIMEOUT_SECONDS = 300.0


@contextlib.asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[https_server.HttpsServer]:
    async with https_server.running(HOST) as server:
        server.answer = answer
        yield server


async def get(
    server: https_server.HttpsServer,
    *,
    host: str = HOST,
    addresses: tuple[str, ...] = ("127.0.0.1",),
    seconds: float = TIMEOUT_SECONDS,
) -> https_get.Response | https_get.Failure:
    client = https_get.Client(server.context, port=server.port, seconds=seconds)
    return await client.get(host, "/.well-known/mta-sts.txt", addresses=addresses)


async def test_a_response_is_its_status_its_media_type_and_its_body() -> None:
    async with answering(response(b"version: STSv1\n", media_type="Text/Plain; charset=utf-8")) as server:
        assert await get(server) == https_get.Response(200, "text/plain", b"version: STSv1\n")
        (request,) = server.requests
    assert request.startswith(b"GET /.well-known/mta-sts.txt HTTP/1.1\r\nHost: mta-sts.example.org:")


async def test_a_response_is_complete_when_it_says_so_and_not_when_the_connection_ends() -> None:
    async with answering(response(b"body")) as server:
        server.stays_open = True
        assert await get(server) == https_get.Response(200, "text/plain", b"body")


async def test_a_redirect_is_not_followed() -> None:
    redirect = response(b"", "Location: https://example.org/", status="301 Moved Permanently")
    async with answering(redirect) as server:
        found = await get(server)
        assert len(server.requests) == 1
    assert isinstance(found, https_get.Response)
    assert found.status == 301


@pytest.mark.parametrize(
    "answer, trouble",
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour", "ends before it is complete"),
        (b"HTTP/1.1 200 OK\r\n\r\nwithout a length", "ends before it is complete"),
        (b"220 mx.example.org ESMTP\r\n", "is not HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", "is not HTTP"),
        (response(b"x" * (https_get.MAX_BODY_BYTES + 1)), "is too long"),
        (b"HTTP/1.1 200 OK\r\n" + b"X-Long: header\r\n" * 10_000, "has too many header fields"),
    ],
)
async def test_a_response_that_does_not_count_is_a_failure(answer: bytes, trouble: str) -> None:
    async with answering(answer) as server:
        found = await get(server)
    assert isinstance(found, https_get.Failure)
    assert found.detail == f"{HOST}: the response {trouble}"


async def test_a_host_that_hangs_up_without_a_word_has_not_answered() -> None:
    async with answering(b"") as server:
        found = await get(server, addresses=("127.0.0.1", "127.0.0.1"))
        assert len(server.requests) == 2
    assert found == https_get.Failure(f"{HOST} at 127.0.0.1: the connection was closed before a response came")


async def test_the_longest_body_is_taken() -> None:
    async with answering(response(b"x" * https_get.MAX_BODY_BYTES)) as server:
        found = await get(server)
    assert isinstance(found, https_get.Response)
    assert len(found.body) == https_get.MAX_BODY_BYTES


async def test_a_certificate_for_another_name_is_refused() -> None:
    async with answering(response(b"body")) as server:
        found = await get(server, host="mta-sts.example.net")
        assert server.requests == []
    assert isinstance(found, https_get.Failure)
    assert "its certificate is not valid" in found.detail


async def test_a_certificate_of_an_unknown_authority_is_refused_by_default() -> None:
    async with answering(response(b"body")) as server:
        found = await https_get.Client(port=server.port).get(HOST, "/", addresses=["127.0.0.1"])
        assert server.requests == []
    assert isinstance(found, https_get.Failure)
    assert "its certificate is not valid" in found.detail


async def test_a_host_that_says_nothing_is_left_in_time() -> None:
    async with answering(None) as server:
        found = await get(server, seconds=0.3)
    assert found == https_get.Failure(f"{HOST}: no complete response within 0.3 seconds")


async def test_an_address_where_nobody_listens_leaves_it_to_the_next() -> None:
    async with answering(response(b"body")) as server:
        assert await get(server, addresses=("127.0.0.2", "127.0.0.1")) == https_get.Response(200, "text/plain", b"body")


async def test_the_last_failure_names_the_address() -> None:
    with socket.socket() as nobody:  # bound, but not listening
        nobody.bind(("127.0.0.1", 0))
        client = https_get.Client(port=nobody.getsockname()[1])
        found = await client.get(HOST, "/", addresses=["127.0.0.1"])
    assert isinstance(found, https_get.Failure)
    assert found.detail.startswith(f"{HOST} at 127.0.0.1: ")


async def test_without_an_address_there_is_nothing_to_ask() -> None:
    assert await https_get.Client().get(HOST, "/", addresses=[]) == https_get.Failure(f"{HOST} has no address")


async def test_who_stops_waiting_leaves_nothing_behind() -> None:
    async with answering(None) as server:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(get(server), 0.3)
