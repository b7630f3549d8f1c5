"""A connection that begins with TLS has its place and its time from the moment that it is accepted."""

import asyncio
import dataclasses
import errno
import ssl
from typing import cast

import pytest

from postroad.network.smtp import smtp_server
from postroad.network.tls import server_tls as tls_accept
from tests.network.recording_listener import (
    FEATURES,
    TIMEOUT_SECONDS,
    TRANSACTION,
    Recorded,
    RecordingPolicy,
    RunningListener,
    connect,
    running,
)


async def banner(server: RunningListener, tls: ssl.SSLContext) -> bytes:
    """What a client hears first; nothing when it is turned away."""
    try:
        async with connect(server.address, tls=tls) as client:
            return await client.reply()
    except (ConnectionError, ssl.SSLError, asyncio.IncompleteReadError):
        return b""


async def until_let_in(server: RunningListener, tls: ssl.SSLContext) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while not (await banner(server, tls)).startswith(b"220 "):
            await asyncio.sleep(0)


@pytest.mark.parametrize("limits", [{"connections": 2}, {"connections_per_address": 2}])
async def test_handshakes_that_do_not_come_to_an_end_count_and_the_oldest_makes_room(
    limits: dict[str, int], server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with (
        running(tls=lambda: server_tls, implicit_tls=True, limits=smtp_server.ListenerLimits(**limits)) as server,
        connect(server.address) as first,
        connect(server.address) as second,
    ):
        assert (await banner(server, client_tls)).startswith(b"220 ")
        assert await first.rest() == b""
        assert not second.reader.at_eof()


async def test_who_never_shakes_hands_is_closed_and_its_place_is_free(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    limits = smtp_server.ListenerLimits(connections=1, handshake_seconds=0.1)
    async with (
        running(tls=lambda: server_tls, implicit_tls=True, limits=limits) as server,
        connect(server.address) as silent,
    ):
        assert await silent.rest() == b""
        await until_let_in(server, client_tls)


async def test_who_cannot_shake_hands_is_closed_and_never_obeyed(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    limits = smtp_server.ListenerLimits(connections=1)
    async with running(tls=lambda: server_tls, implicit_tls=True, limits=limits) as server:
        async with connect(server.address) as client:
            await client.send(b"EHLO x\r\nMAIL FROM:<a@example.org>\r\n")
            assert b"250" not in await client.rest()
        await until_let_in(server, client_tls)
        assert server.kept.problems == []


async def test_a_session_takes_the_place_of_its_handshake(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    limits = smtp_server.ListenerLimits(connections=1, connections_per_address=1)
    async with running(tls=lambda: server_tls, implicit_tls=True, limits=limits) as server:
        async with connect(server.address, tls=client_tls) as client:
            await client.ask(TRANSACTION, replies=5)
            assert await banner(server, client_tls) == b""
            assert (await client.ask(b"x\r\n.\r\n"))[0].startswith(b"250 ")
        await until_let_in(server, client_tls)


async def test_stopping_does_not_wait_for_handshakes(server_tls: ssl.SSLContext) -> None:
    async with (
        running(tls=lambda: server_tls, implicit_tls=True, limits=smtp_server.ListenerLimits(connections=1)) as server,
        connect(server.address) as evicted,
        connect(server.address) as silent,
    ):
        # The second is let in in the place of the first.
        assert await evicted.rest() == b""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            await server.listener.stop(grace_seconds=10 * TIMEOUT_SECONDS)
        assert await silent.rest() == b""


async def test_a_client_that_does_not_say_good_bye_holds_nobody_up(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async with running(tls=lambda: server_tls, implicit_tls=True) as server:
        reader, writer = await asyncio.open_connection(*server.address, ssl=client_tls)
        assert (await reader.readline()).startswith(b"220 ")
        # Nothing is read any more, so the farewell of the server is not answered.
        transport = cast("asyncio.Transport", writer.transport)
        transport.pause_reading()
        async with asyncio.timeout(TIMEOUT_SECONDS / 2):
            await server.listener.stop(grace_seconds=10 * TIMEOUT_SECONDS)
        transport.abort()


class Descriptorless(asyncio.Transport):
    """A connection whose descriptor cannot be doubled."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1), "socket": self})
        self.is_aborted = False

    def dup(self) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    def abort(self) -> None:
        self.is_aborted = True


async def test_a_connection_for_which_there_is_no_descriptor_is_closed_and_leaves_nothing(
    server_tls: ssl.SSLContext,
) -> None:
    shared = smtp_server.SmtpListenerState(
        FEATURES,
        lambda _: RecordingPolicy(Recorded(), None),
        failed=print,
        limits=smtp_server.ListenerLimits(),
        tls=lambda: server_tls,
    )
    arrival = tls_accept.TlsAccept(
        tls_accept.Handshakes(
            lambda: server_tls,
            lambda on_admitted: smtp_server.SmtpSession(shared, on_admitted=on_admitted),
            connections=shared.connections,
            state=shared,
            seconds=1,
        )
    )
    transport = Descriptorless()
    arrival.connection_made(transport)
    assert transport.is_aborted
    arrival.shutdown()
    arrival.connection_lost(None)
    assert [*shared.connections, *shared.working] == []


async def test_starttls_is_offered_once_there_is_a_certificate(server_tls: ssl.SSLContext) -> None:
    certificates: list[ssl.SSLContext] = []
    features = dataclasses.replace(FEATURES, starttls=True)
    async with running(features, tls=lambda: certificates[-1] if certificates else None) as server:
        offered = []
        for _ in range(2):
            async with connect(server.address) as client:
                await client.reply()
                offered.append(b"STARTTLS" in b"".join(await client.ask(b"EHLO client.example\r\n")))
            certificates.append(server_tls)
    assert offered == [False, True]
