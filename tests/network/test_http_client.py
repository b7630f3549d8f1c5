"""Connections are used again where that is safe, few of them and not for long; nothing is left behind."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable

import pytest

from postroad.network.http import http_client
from postroad.network.http.http_client import Response
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


# Responses are read alike wherever their bytes are split; what is broken, endless or not asked for is found.


MAX_BODY = 64
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nContent-Type: a/b\r\n\r\n"
)
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"
INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def read(*parts: bytes, max_body: int = MAX_BODY) -> tuple[Response | None, http_client.ResponseParser]:
    """The response and its reader; parts behind the response are not read."""
    reader = http_client.ResponseParser()
    reader.begin(max_body=max_body)
    for part in parts:
        if (response := reader.feed(part)) is not None:
            return response, reader
    return None, reader


def complete(*parts: bytes, max_body: int = MAX_BODY) -> Response:
    response, _ = read(*parts, max_body=max_body)
    assert response is not None
    return response


def trouble(*parts: bytes) -> str:
    with pytest.raises(http_client.HttpClientError) as caught:
        read(*parts)
    assert caught.value.code == "invalid_response"
    return str(caught.value)


def ended(*parts: bytes) -> Response | http_client.HttpClientError:
    response, reader = read(*parts)
    assert response is None
    return reader.end()


@pytest.mark.parametrize("raw", [PLAIN, CHUNKED, EMPTY, INTERIM + PLAIN])
def test_a_response_is_the_same_wherever_its_bytes_are_split(raw: bytes) -> None:
    whole = complete(raw)
    for cut in range(1, len(raw)):
        assert complete(raw[:cut], raw[cut:]) == whole
    assert complete(*(raw[index : index + 1] for index in range(len(raw)))) == whole


def test_a_response_is_its_status_its_fields_and_its_body() -> None:
    headers = {b"content-type": b"text/plain", b"content-length": b"5"}
    assert complete(PLAIN) == Response(200, headers, b"hello")


def test_chunks_are_joined_and_trailers_are_nobodys() -> None:
    assert complete(CHUNKED) == Response(200, {b"transfer-encoding": b"chunked"}, b"abcde")


def test_interim_responses_leave_nothing_behind() -> None:
    assert complete(INTERIM + PLAIN) == complete(PLAIN)


def test_content_is_not_decoded() -> None:
    raw = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n\x1f\x8b"
    assert complete(raw).body == b"\x1f\x8b"


@pytest.mark.parametrize("status", [200, 299, 301, 404, 599, 999])
def test_every_final_status_is_a_response(status: int) -> None:
    assert complete(b"HTTP/1.1 %d Whatever\r\nContent-Length: 0\r\n\r\n" % status).status == status


@pytest.mark.parametrize(
    "raw",
    [
        b"hello",
        b"<html>HTTP/0.9 had no head</html>",
        b"220 mx.example.org ESMTP\r\n",
        b"\r\n" + PLAIN,
        b"RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"ICE/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 2 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n folded\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a size\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        INTERIM + b"nonsense",
    ],
)
def test_what_is_not_http_is_reported_wherever_it_is_split(raw: bytes) -> None:
    assert trouble(raw) == "the response is not HTTP"
    assert trouble(*(raw[index : index + 1] for index in range(len(raw)))) == "the response is not HTTP"


def test_random_bytes_are_never_a_response_and_never_a_crash() -> None:
    chance = random.Random(7)
    for _ in range(2000):
        raw = bytearray(PLAIN)
        for _ in range(chance.randint(1, 4)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        try:
            response, _ = read(bytes(raw))
        except http_client.HttpClientError:
            continue
        assert response is None or len(response.body) <= MAX_BODY


def test_a_head_has_at_most_a_hundred_fields_with_those_of_interim_ones() -> None:
    end = b"Content-Length: 0\r\n\r\n"
    assert complete(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 99 + end).status == 200
    assert trouble(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100 + end) == "the response has too many header fields"
    early = b"HTTP/1.1 103 Early Hints\r\n" + b"X: y\r\n" * 60 + b"\r\n"
    assert trouble(early, early) == "the response has too many header fields"


@pytest.mark.parametrize(
    "start, rest",
    [
        (b"HTTP/1.1 200 ", b"O"),
        (b"HTTP/1.1 200 OK\r\n", b"X"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ", b"y"),
    ],
)
def test_all_that_is_not_body_has_one_budget(start: bytes, rest: bytes) -> None:
    endless = start + rest * http_client.OVERHEAD_BYTES
    assert trouble(endless) == "the response header is too long"
    assert trouble(*(endless[index : index + 999] for index in range(0, len(endless), 999))) == (
        "the response header is too long"
    )


def test_a_body_in_small_chunks_fits_the_budget() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 2048 + b"0\r\n\r\n"
    assert complete(raw, max_body=2048).body == b"x" * 2048


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffff\r\n",
    ],
)
def test_a_body_is_cut_when_more_comes_than_is_wanted(head: bytes) -> None:
    response, reader = read(head, b"x" * MAX_BODY)
    assert response is None
    response = reader.feed(b"x")
    assert response is not None
    assert response.is_truncated
    assert response.body == b"x" * MAX_BODY
    assert not reader.is_reusable
    assert complete(head + b"x" * 100_000).body == b"x" * MAX_BODY


def test_a_body_of_many_chunks_is_cut_however_many_come_at_once() -> None:
    raw = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"8\r\n12345678\r\n" * 10_000
    assert complete(raw).body == b"12345678" * 8
    assert complete(*(raw[index : index + 7] for index in range(0, len(raw), 7))).body == b"12345678" * 8


def test_a_body_that_is_exactly_as_long_as_wanted_is_not_cut() -> None:
    response, reader = read(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + b"x" * MAX_BODY)
    assert response is not None
    assert not response.is_truncated
    assert reader.is_reusable


def test_no_body_is_wanted_and_none_is_kept() -> None:
    response = complete(PLAIN, max_body=0)
    assert response.body == b""
    assert response.is_truncated


@pytest.mark.parametrize(
    "raw, is_reusable",
    [
        (PLAIN, True),
        (CHUNKED, True),
        (EMPTY, True),
        (INTERIM + PLAIN, True),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\nbody", False),
        (PLAIN + PLAIN, False),
        (PLAIN + b"x", False),
        (EMPTY + b"a body that must not be", False),
        (PLAIN + b"x" * 100_000, False),
    ],
)
def test_the_next_response_may_follow_one_that_ended_where_it_said(raw: bytes, *, is_reusable: bool) -> None:
    response, reader = read(raw)
    assert response is not None
    assert reader.is_reusable is is_reusable


def test_a_reader_reads_one_response_after_the_other() -> None:
    reader = http_client.ResponseParser()
    for raw in (PLAIN, CHUNKED, EMPTY, PLAIN):
        reader.begin(max_body=MAX_BODY)
        assert reader.is_empty
        assert reader.feed(raw) == complete(raw)
        assert not reader.is_empty


@pytest.mark.parametrize("coding", [b"", b"Transfer-Encoding: gzip\r\n"])
def test_a_body_without_a_length_ends_with_the_connection(coding: bytes) -> None:
    response = ended(b"HTTP/1.1 200 OK\r\n" + coding + b"\r\nsome", b"thing")
    assert isinstance(response, Response)
    assert response.body == b"something"
    assert response.ends_with_connection
    assert not response.is_truncated


@pytest.mark.parametrize(
    "raw",
    [
        b"H",
        b"HTTP/1.1 200 OK\r\nX: y\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfour",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ],
)
def test_a_response_that_ends_too_early_is_none(raw: bytes) -> None:
    found = ended(raw)
    assert isinstance(found, http_client.HttpClientError)
    assert found.code == "invalid_response"
    assert str(found) == "the response ends before it is complete"


def test_a_mistake_of_ours_is_loud(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(http_client.ResponseParser, "on_headers_complete", fail)
    with pytest.raises(ZeroDivisionError):
        read(PLAIN)
