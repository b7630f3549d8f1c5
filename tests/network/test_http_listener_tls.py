"""HTTPS: the limits of the listener hold from the moment that a connection is accepted, and so does the certificate."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable

import pytest

from postroad.network.http import http_messages, http_server
from tests import raw_http
from tests.network.test_http_listener import refuse


async def served(request: http_server.Request) -> None:
    request.respond(200, [], b"served")


@contextlib.asynccontextmanager
async def listening(
    tls: Callable[[], ssl.SSLContext | None], limits: http_messages.Limits | None = None
) -> AsyncIterator[http_server.HttpListener]:
    listener = http_server.HttpListener(served, refuse=refuse, limits=limits, tls=tls, sweep_seconds=0.02)
    await listener.start("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.stop(grace_seconds=0)


async def answer(address: tuple[str, int], tls: ssl.SSLContext) -> bytes:
    """The body of the response; nothing when the client is turned away."""
    async with asyncio.timeout(raw_http.TIMEOUT_SECONDS):
        try:
            reader, writer = await asyncio.open_connection(*address, ssl=tls)
        except (ConnectionError, ssl.SSLError):
            return b""
        try:
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return (await reader.read()).partition(b"\r\n\r\n")[2]
        except (ConnectionError, ssl.SSLError):
            return b""
        finally:
            writer.transport.abort()


async def test_a_request_over_tls_is_served(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    async with listening(lambda: server_tls) as listener:
        assert await answer(listener.address, client_tls) == b"served"


@pytest.mark.parametrize("limits", [{"connections": 1}, {"connections_per_address": 1}])
async def test_a_handshake_that_does_not_end_counts_as_a_connection_and_makes_room(
    limits: dict[str, int], server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with (
        listening(lambda: server_tls, http_messages.Limits(**limits)) as listener,
        raw_http.connect(listener.address) as silent,
    ):
        assert await answer(listener.address, client_tls) == b"served"
        assert await silent.rest() == b""


async def test_a_handshake_has_a_time_limit(server_tls: ssl.SSLContext) -> None:
    limits = http_messages.Limits(handshake_seconds=0.05)
    async with listening(lambda: server_tls, limits) as listener, asyncio.timeout(raw_http.TIMEOUT_SECONDS):
        reader, writer = await asyncio.open_connection(*listener.address)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.transport.abort()


async def test_without_a_certificate_connections_are_closed_until_there_is_one(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    certificates: list[ssl.SSLContext] = []
    async with listening(lambda: certificates[-1] if certificates else None) as listener:
        assert await answer(listener.address, client_tls) == b""
        certificates.append(server_tls)
        assert await answer(listener.address, client_tls) == b"served"
