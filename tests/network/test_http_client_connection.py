"""A connection goes to the address it is given and trusts who it should; an early end is reported in words."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
import trustme

from postroad.network.http import http_client
from postroad.network.http.http_client import Peer
from tests import raw_http, webhook_server
from tests.webhook_server import NAME, PUBLIC, WebhookServer, ok

REQUEST = b"POST /hook HTTP/1.1\r\nHost: hooks.example.org\r\nContent-Length: 2\r\n\r\n{}"


def place_of(endpoint: WebhookServer, *, host: str = NAME, ca_file: str | None = None) -> Peer:
    tls = None if endpoint.tls is None else http_client.client_context(ca_file or endpoint.ca_file)
    return Peer(host=host, address=endpoint.host, port=endpoint.port, tls=tls)


@contextlib.contextmanager
def closed_port() -> Iterator[int]:
    """A port that is bound, but where nobody listens."""
    with socket.socket() as nobody:
        nobody.bind((PUBLIC, 0))
        yield nobody.getsockname()[1]


@contextlib.asynccontextmanager
async def accepting(act: Callable[[socket.socket], object]) -> AsyncIterator[int]:
    """A port whose connections are given to `act` as they are, and closed after it."""

    async def serve() -> None:
        while True:
            sock, _ = await asyncio.get_running_loop().sock_accept(listening)
            with sock:
                act(sock)

    with socket.create_server((PUBLIC, 0)) as listening:
        listening.settimeout(0)
        serving = asyncio.create_task(serve())
        try:
            yield listening.getsockname()[1]
        finally:
            serving.cancel()
            await asyncio.wait({serving})


def reset(sock: socket.socket) -> None:
    """Make the close of this one a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def exchange(place: Peer, request: bytes = REQUEST, *, max_body: int = 2048) -> http_client.Response:
    async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
        connection = await http_client.connect(place)
        try:
            return await connection.exchange(request, max_body=max_body)
        finally:
            connection.abort()


async def trouble(place: Peer, *, code: str) -> str:
    with pytest.raises(http_client.HttpClientError) as caught:
        await exchange(place)
    assert caught.value.code == code
    return str(caught.value)


@pytest.mark.parametrize("tls", [False, True])
async def test_a_request_goes_out_as_it_is_and_its_response_comes_back(*, tls: bool) -> None:
    async with webhook_server.running(tls=tls, answer=ok(201, b"made", "X-Kind: a")) as endpoint:
        response = await exchange(place_of(endpoint))
        (received,) = endpoint.requests
    assert (received.method, received.path, received.body) == ("POST", "/hook", b"{}")
    assert received.headers == {"host": "hooks.example.org", "content-length": "2"}
    assert (response.status, response.body, response.headers[b"x-kind"]) == (201, b"made", b"a")


async def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with webhook_server.running() as endpoint:
        assert (await exchange(place_of(endpoint))).status == 200


async def test_a_name_is_not_an_address_and_is_never_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", None)
    with pytest.raises(ValueError, match="localhost"):
        await http_client.connect(Peer(host=NAME, address="localhost", port=9, tls=None))


async def test_an_address_may_stand_in_place_of_the_name() -> None:
    async with webhook_server.running() as endpoint:
        assert (await exchange(place_of(endpoint, host=PUBLIC))).status == 200


async def test_an_ipv6_address_is_reached_too() -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    async with webhook_server.running(host="::1") as endpoint:
        assert (await exchange(place_of(endpoint, host="::1"))).status == 200
        assert (await exchange(place_of(endpoint))).status == 200


async def test_the_name_is_sent_so_that_a_host_can_choose_its_certificate(authority: trustme.CA) -> None:
    asked: list[str | None] = []
    context = webhook_server.server_context(authority.issue_cert(NAME))
    context.sni_callback = lambda _connection, name, _context: asked.append(name)
    async with webhook_server.running(tls=context, authority=authority) as endpoint:
        await exchange(place_of(endpoint))
    assert asked == [NAME]


# Who is not trusted gets no request.


async def test_a_certificate_for_another_host_is_refused() -> None:
    async with webhook_server.running() as endpoint:
        said = await trouble(place_of(endpoint, host="other.example.org"), code="tls_failure")
        assert endpoint.requests == []
    assert said.startswith("other.example.org at 127.0.0.2: its certificate is not valid: Hostname mismatch")


async def test_a_certificate_for_another_address_is_refused(authority: trustme.CA) -> None:
    context = webhook_server.server_context(authority.issue_cert("127.0.0.3"))
    async with webhook_server.running(tls=context, authority=authority) as endpoint:
        said = await trouble(place_of(endpoint, host=PUBLIC), code="tls_failure")
        assert endpoint.requests == []
    assert said.startswith("127.0.0.2: its certificate is not valid: IP address mismatch")


async def test_an_unknown_authority_is_refused(authority: trustme.CA) -> None:
    with webhook_server.authority_file(authority) as ca_file:
        async with webhook_server.running() as endpoint:
            said = await trouble(place_of(endpoint, ca_file=ca_file), code="tls_failure")
            assert endpoint.requests == []
    assert "its certificate is not valid: unable to get local issuer certificate" in said


async def test_by_default_the_authorities_of_the_system_are_trusted_and_ours_is_none() -> None:
    context = http_client.client_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    async with webhook_server.running() as endpoint:
        place = Peer(host=NAME, address=endpoint.host, port=endpoint.port, tls=context)
        assert "its certificate is not valid" in await trouble(place, code="tls_failure")
        assert endpoint.requests == []


async def test_a_host_that_speaks_no_tls_is_a_failure_of_tls() -> None:
    async with accepting(lambda sock: sock.sendall(b"220 mx.example.org ESMTP\r\n")) as port:
        place = Peer(host=NAME, address=PUBLIC, port=port, tls=http_client.client_context())
        assert "TLS: " in await trouble(place, code="tls_failure")


@pytest.mark.parametrize("host", [".example.org", "a" * 64 + ".example.org"])
async def test_a_name_that_no_certificate_can_bear_is_a_failure_of_tls(host: str) -> None:
    async with webhook_server.running() as endpoint:
        said = await trouble(place_of(endpoint, host=host), code="tls_failure")
        assert endpoint.connections == 0
    assert said == f"{host} is not a valid host name for a certificate"


# Connections that fail.


@pytest.mark.parametrize("tls", [False, True])
async def test_nobody_listening_is_reported_as_refused(*, tls: bool) -> None:
    context = http_client.client_context() if tls else None
    with closed_port() as port:
        said = await trouble(Peer(host=NAME, address=PUBLIC, port=port, tls=context), code="connection_failed")
    assert said == f"{NAME} at 127.0.0.2: connection refused"


async def test_an_address_that_cannot_be_reached_is_reported_in_the_words_of_the_system() -> None:
    # The all-ones address takes no connections on any system.
    place = Peer(host=NAME, address="255.255.255.255", port=443, tls=None)
    assert (await trouble(place, code="connection_failed")).startswith(f"{NAME} at 255.255.255.255: ")


async def test_a_reset_is_reported() -> None:
    async with accepting(reset) as port:
        place = Peer(host=NAME, address=PUBLIC, port=port, tls=None)
        assert (await trouble(place, code="connection_failed")).startswith(f"{NAME} at 127.0.0.2: ")


@pytest.mark.parametrize("tls", [False, True])
async def test_hanging_up_before_the_response_is_a_failure_of_the_connection(*, tls: bool) -> None:
    async with webhook_server.running(tls=tls, answer=b"") as endpoint:
        said = await trouble(place_of(endpoint), code="connection_failed")
    assert said == f"{NAME} at 127.0.0.2: the connection was closed before a response came"


@pytest.mark.parametrize("act", [lambda _: None, reset])
async def test_hanging_up_in_the_handshake_is_a_failure_of_tls(act: Callable[[socket.socket], None]) -> None:
    async with accepting(act) as port:
        place = Peer(host=NAME, address=PUBLIC, port=port, tls=http_client.client_context())
        said = await trouble(place, code="tls_failure")
    assert said == f"{NAME} at 127.0.0.2: the connection was closed in the TLS handshake"


@pytest.mark.parametrize("tls", [False, True])
async def test_hanging_up_within_the_response_is_a_broken_response(*, tls: bool) -> None:
    broken = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhalf"
    async with webhook_server.running(tls=tls, answer=broken) as endpoint:
        said = await trouble(place_of(endpoint), code="invalid_response")
    assert said == "the response ends before it is complete"


@pytest.mark.parametrize("tls", [False, True])
async def test_a_body_may_end_with_the_connection(*, tls: bool) -> None:
    endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end"
    async with webhook_server.running(tls=tls, answer=endless) as endpoint:
        response = await exchange(place_of(endpoint))
    assert response.body == b"until the end"
    assert response.ends_with_connection


async def forever(start: bytes, piece: bytes) -> AsyncIterator[bytes]:
    yield start
    while True:
        yield piece
        await asyncio.sleep(0)  # the other side has to read in the same loop


@pytest.mark.parametrize("tls", [False, True])
async def test_a_body_without_an_end_is_cut_and_the_connection_closed(*, tls: bool) -> None:
    endless = forever(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 4096)
    async with webhook_server.running(tls=tls, answer=lambda _: endless) as endpoint:
        response = await exchange(place_of(endpoint))
        await endpoint.left_alone()
    assert response.is_truncated
    assert response.body == b"x" * 2048


@pytest.mark.parametrize("tls", [False, True])
async def test_a_head_without_an_end_closes_the_connection(*, tls: bool) -> None:
    endless = forever(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 4096)
    async with webhook_server.running(tls=tls, answer=lambda _: endless) as endpoint:
        assert await trouble(place_of(endpoint), code="invalid_response") == "the response header is too long"
        await endpoint.left_alone()


# Time and size.


@pytest.mark.parametrize("tls", [False, True])
async def test_who_stops_waiting_for_a_response_leaves_no_connection(*, tls: bool) -> None:
    async with webhook_server.running(tls=tls, answer=None) as endpoint:
        waiting = asyncio.create_task(exchange(place_of(endpoint)))
        await endpoint.received(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await endpoint.left_alone()


async def test_who_stops_waiting_for_a_handshake_leaves_no_connection() -> None:
    accepted, ended = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.set()
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.transport.abort()
        ended.set()

    async with await asyncio.start_server(say_nothing, PUBLIC, 0) as server:
        port = server.sockets[0].getsockname()[1]
        place = Peer(host=NAME, address=PUBLIC, port=port, tls=http_client.client_context())
        waiting = asyncio.create_task(exchange(place))
        await accepted.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(ended.wait(), raw_http.TIMEOUT_SECONDS)


@pytest.mark.parametrize("tls", [False, True])
async def test_a_request_may_be_longer_than_what_the_network_takes_at_once(*, tls: bool) -> None:
    body = b"x" * 8_000_000
    request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    async with webhook_server.running(tls=tls) as endpoint:
        assert (await exchange(place_of(endpoint), request)).status == 200
        assert endpoint.requests[0].body == body


async def test_an_answer_that_overtakes_its_request_leaves_a_connection_that_is_not_used_again() -> None:
    async def answer_early(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(ok(413, b"no"))
        await done.wait()
        writer.transport.abort()

    done = asyncio.Event()
    async with await asyncio.start_server(answer_early, PUBLIC, 0, limit=1024) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await http_client.connect(Peer(host=NAME, address=PUBLIC, port=port, tls=None))
        response = await connection.exchange(b"x" * 50_000_000, max_body=2048)
        assert response.status == 413
        assert not connection.is_reusable
        connection.abort()
        done.set()
