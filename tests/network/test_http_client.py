"""Connections are used again where that is safe, few of them and not for long; nothing is left behind."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable

import pytest

from postroad.network.http import http_client
from tests import raw_http, webhook_server
from tests.webhook_server import NAME, PUBLIC, ReceivedRequest, WebhookServer, ok

REQUEST = b"POST /hook HTTP/1.1\r\nHost: hooks.example.org\r\nContent-Length: 2\r\n\r\n{}"


@contextlib.asynccontextmanager
async def running(*, idle_seconds: float = 600, max_idle: int = 100) -> AsyncIterator[http_client.Client]:
    client = http_client.Client(idle_seconds=idle_seconds, max_idle=max_idle)
    try:
        async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
            yield client
    finally:
        await client.close()


def place_of(endpoint: WebhookServer) -> http_client.Peer:
    tls = None if endpoint.tls is None else http_client.client_context(endpoint.ca_file)
    return http_client.Peer(host=NAME, address=endpoint.host, port=endpoint.port, tls=tls)


async def post(
    client: http_client.Client, peer: http_client.Peer, request: bytes = REQUEST, *, max_body: int = 2048
) -> http_client.Response:
    return await client.exchange(peer, request, max_body=max_body)


class Meeting:
    """An answer that is given when so many requests wait for one, so that each has a connection of its own."""

    def __init__(self, count: int) -> None:
        self._together = asyncio.Barrier(count)

    async def __call__(self, _request: ReceivedRequest) -> bytes:
        await self._together.wait()
        return ok()


async def post_together(client: http_client.Client, endpoint: WebhookServer, *, count: int) -> None:
    """So many requests at the same time."""
    place = place_of(endpoint)
    endpoint.answer = Meeting(count)
    await asyncio.gather(*(post(client, place) for _ in range(count)))
    endpoint.answer = ok()


async def open_connections(endpoint: WebhookServer, count: int) -> None:
    """Wait until so many are open."""
    async with endpoint.changed:
        await endpoint.changed.wait_for(lambda: endpoint.open_connections == count)


# Used again.


@pytest.mark.parametrize("tls", [False, True])
async def test_one_request_after_the_other_goes_over_one_connection(*, tls: bool) -> None:
    async with webhook_server.running(tls=tls) as endpoint, running() as client:
        place = place_of(endpoint)
        for _ in range(20):
            assert (await post(client, place)).body == b"ok"
        assert endpoint.connections == 1
        assert len(endpoint.requests) == 20


async def test_places_that_are_equal_share_and_others_do_not() -> None:
    async with webhook_server.running(tls=False) as endpoint, running() as client:
        for host in (NAME, NAME, "other.example.org", "other.example.org"):
            place = http_client.Peer(host=host, address=PUBLIC, port=endpoint.port, tls=None)
            await post(client, place)
        assert [request.connection for request in endpoint.requests] == [1, 1, 2, 2]


async def test_another_trust_is_another_place() -> None:
    async with webhook_server.running() as endpoint, running() as client:
        await post(client, place_of(endpoint))
        await post(client, place_of(endpoint))
        assert endpoint.connections == 2


@pytest.mark.parametrize("tls", [False, True])
async def test_many_exchanges_at_once_get_each_its_own_response(*, tls: bool) -> None:
    chance = random.Random(7)

    async def echo(request: ReceivedRequest) -> bytes:
        for _ in range(chance.randint(0, 3)):
            await asyncio.sleep(0)
        return ok(200, request.body)

    async with webhook_server.running(tls=tls, answer=echo) as endpoint, running() as client:
        place = place_of(endpoint)

        async def post_some(worker: int) -> None:
            for number in range(10):
                body = b"%d of %d" % (number, worker)
                request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                assert (await post(client, place, request)).body == body

        await asyncio.gather(*(post_some(worker) for worker in range(30)))
        assert len(endpoint.requests) == 300
        assert endpoint.connections <= 30


@pytest.mark.parametrize(
    "answer, connections",
    [
        (ok(204), 1),
        (ok(500, b"trouble"), 1),
        (ok(302, b"", "Location: https://example.org/"), 1),
        (b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" + ok(), 1),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 1),
        (ok(200, b"ok", "Connection: close"), 2),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 2),
        (ok() + b"more", 2),
        (ok() + ok(), 2),
        (ok(200, b"x" * 4096), 2),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end", 2),
    ],
)
async def test_a_connection_is_kept_when_nothing_of_its_response_is_open(answer: bytes, connections: int) -> None:
    async with webhook_server.running(answer=answer) as endpoint, running() as client:
        place = place_of(endpoint)
        first = await post(client, place)
        assert await post(client, place) == first
        assert endpoint.connections == connections


async def test_a_response_in_pieces_is_put_together() -> None:
    async def pieces(raw: bytes) -> AsyncIterator[bytes]:
        for index in range(len(raw)):
            yield raw[index : index + 1]
            await asyncio.sleep(0)

    async with webhook_server.running(answer=lambda _: pieces(ok(200, b"slow"))) as endpoint, running() as client:
        place = place_of(endpoint)
        assert [(await post(client, place)).body for _ in range(3)] == [b"slow"] * 3
        assert endpoint.connections == 1


async def test_trouble_with_one_response_leaves_the_next_alone() -> None:
    async with webhook_server.running(answer=b"nonsense") as endpoint, running() as client:
        place = place_of(endpoint)
        with pytest.raises(http_client.HttpClientError) as caught:
            await post(client, place)
        assert caught.value.code == "invalid_response"
        endpoint.answer = ok()
        assert (await post(client, place)).status == 200
        assert endpoint.connections == 2


# Closed by the other side.


class Server:
    """A plain server whose kept connections a test can close, or write to, as it likes."""

    def __init__(self, answer: Callable[[int], bytes]) -> None:
        self._answer = answer
        self.port = 0
        self.requests = 0
        self.writers: list[asyncio.StreamWriter] = []

    @property
    def place(self) -> http_client.Peer:
        return http_client.Peer(host=NAME, address=PUBLIC, port=self.port, tls=None)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                await reader.readexactly(len(REQUEST))
                self.requests += 1
                answer = self._answer(self.requests)
                if not answer:
                    break
                writer.write(answer)
        writer.close()


@contextlib.asynccontextmanager
async def serving(answer: Callable[[int], bytes] = lambda _: ok()) -> AsyncIterator[Server]:
    server = Server(answer)
    async with await asyncio.start_server(server.serve, PUBLIC, 0) as listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server
        for writer in server.writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@pytest.mark.parametrize("tls", [False, True])
async def test_a_request_on_a_kept_connection_that_ends_under_it_is_not_repeated(*, tls: bool) -> None:
    # The second request is read, and the connection closed in its face: nobody knows whether it was heeded.
    answers = iter([ok(), b"", ok(201)])
    async with webhook_server.running(tls=tls, answer=lambda _: next(answers)) as endpoint, running() as client:
        place = place_of(endpoint)
        assert (await post(client, place)).status == 200
        with pytest.raises(http_client.HttpClientError, match="closed before a response came") as caught:
            await post(client, place)
        assert caught.value.code == "connection_failed"
        assert (await post(client, place)).status == 201
        assert [request.connection for request in endpoint.requests] == [1, 1, 2]


async def test_a_request_whose_response_has_begun_is_not_repeated() -> None:
    async with serving(lambda number: ok() if number == 1 else b"HTTP/1.1 2") as server, running() as client:
        await post(client, server.place)
        waiting = asyncio.create_task(post(client, server.place))
        while server.requests < 2:
            await asyncio.sleep(0)
        server.writers[0].close()
        with pytest.raises(http_client.HttpClientError) as caught:
            await waiting
        assert caught.value.code == "invalid_response"
        assert server.requests == 2


async def test_a_first_request_is_not_repeated() -> None:
    async with serving(lambda _: b"") as server, running() as client:
        with pytest.raises(http_client.HttpClientError) as caught:
            await post(client, server.place)
        assert caught.value.code == "connection_failed"
        assert server.requests == 1


async def test_an_idle_connection_that_the_other_side_closes_is_dropped() -> None:
    async with serving() as server, running() as client:
        await post(client, server.place)
        server.writers[0].close()
        while client._idle:
            await asyncio.sleep(0)
        assert (await post(client, server.place)).status == 200
        assert server.requests == 2


async def test_bytes_that_nobody_asked_for_close_an_idle_connection() -> None:
    async with serving() as server, running() as client:
        await post(client, server.place)
        server.writers[0].write(ok(408, b"too slow"))
        await server.writers[0].wait_closed()
        response = await post(client, server.place)
        assert response.status == 200
        assert len(server.writers) == 2


# Few, and not for long.


@pytest.mark.parametrize("tls", [False, True])
async def test_only_so_many_stay(*, tls: bool) -> None:
    async with webhook_server.running(tls=tls) as endpoint, running(max_idle=3) as client:
        await post_together(client, endpoint, count=8)
        assert endpoint.connections == 8
        await open_connections(endpoint, 3)


async def test_the_one_that_was_idle_longest_goes_first() -> None:
    async with contextlib.AsyncExitStack() as stack:
        endpoints = [await stack.enter_async_context(webhook_server.running(tls=False)) for _ in range(4)]
        client = await stack.enter_async_context(running(max_idle=3))
        for endpoint in endpoints:
            await post(client, place_of(endpoint))
        await endpoints[0].left_alone()
        for endpoint in reversed(endpoints):
            await post(client, place_of(endpoint))
        assert [endpoint.connections for endpoint in endpoints] == [2, 1, 1, 1]


async def test_none_stays_when_none_may() -> None:
    async with webhook_server.running() as endpoint, running(max_idle=0) as client:
        place = place_of(endpoint)
        await post(client, place)
        await endpoint.left_alone()
        await post(client, place)
        assert endpoint.connections == 2


@pytest.mark.parametrize("tls", [False, True])
async def test_idle_connections_are_closed_in_time(*, tls: bool) -> None:
    async with webhook_server.running(tls=tls) as endpoint, running(idle_seconds=0.05) as client:
        await post_together(client, endpoint, count=3)
        await endpoint.left_alone()
        await post(client, place_of(endpoint))
        await endpoint.left_alone()
        assert endpoint.connections == 4


# Stopped.


@pytest.mark.parametrize("tls", [False, True])
async def test_a_cancelled_exchange_closes_its_connection(*, tls: bool) -> None:
    async with webhook_server.running(tls=tls) as endpoint, running() as client:
        place = place_of(endpoint)
        await post(client, place)
        endpoint.answer = None
        exchange = asyncio.create_task(post(client, place))
        await endpoint.received(2)
        exchange.cancel()
        with pytest.raises(asyncio.CancelledError):
            await exchange
        await endpoint.left_alone()
        endpoint.answer = ok()
        assert (await post(client, place)).status == 200
        assert endpoint.connections == 2


@pytest.mark.parametrize("tls", [False, True])
async def test_closing_ends_what_is_idle_and_what_is_under_way(*, tls: bool) -> None:
    async with webhook_server.running(tls=tls) as endpoint, running() as client:
        await post_together(client, endpoint, count=3)
        endpoint.answer = None
        waiting = asyncio.create_task(post(client, place_of(endpoint)))
        await endpoint.received(4)
        await client.close()
        with pytest.raises(http_client.HttpClientError) as caught:
            await waiting
        assert caught.value.code == "connection_failed"
        await endpoint.left_alone()


async def test_a_client_that_is_closed_connects_no_more() -> None:
    async with webhook_server.running() as endpoint, running() as client:
        await client.close()
        with pytest.raises(http_client.HttpClientError, match="closed"):
            await post(client, place_of(endpoint))
        assert endpoint.connections == 0


async def test_closing_while_somebody_connects_leaves_no_connection() -> None:
    async with webhook_server.running(tls=False) as endpoint, running() as client:
        waiting = asyncio.create_task(post(client, place_of(endpoint)))
        await asyncio.sleep(0)
        await client.close()
        with pytest.raises(http_client.HttpClientError, match="closed"):
            await waiting
        await endpoint.left_alone()
        assert endpoint.requests == []


async def test_a_client_can_be_closed_twice() -> None:
    async with webhook_server.running() as endpoint, running() as client:
        await post(client, place_of(endpoint))
        await client.close()
        await client.close()
        await endpoint.left_alone()
