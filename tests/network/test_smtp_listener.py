"""The listener of SMTP binds where it is told, takes so many connections and no more, and stops in order."""

import asyncio
import base64
import contextlib
from typing import Any

import pytest

from postroad.network.smtp import smtp_server
from postroad.protocol.smtp import server_events
from tests.network.recording_listener import TRANSACTION, Gate, Recorded, RecordingPolicy, connect, running

AUTHENTICATING = server_events.Features("mx.example.test", 1_000_000, auth=True, auth_without_tls=True)
LOGIN = b"EHLO x\r\nAUTH PLAIN " + base64.b64encode(b"\0jo\0secret") + b"\r\n"
CLOSING = b"421 4.3.2 Service shutting down; try again later\r\n"


async def test_the_address_is_known_once_it_is_bound() -> None:
    async with running() as server:
        host, port = server.address
        assert host == "127.0.0.1"
        assert port > 0
    features = server_events.Features("mx.example.test", 1000)
    listener = smtp_server.SmtpListener(lambda _: RecordingPolicy(Recorded(), None), features=features, failed=print)
    with pytest.raises(RuntimeError):
        _ = listener.address
    await listener.stop(grace_seconds=0)


@pytest.mark.parametrize("options", [{"starttls": True}, {}])
def test_tls_without_a_certificate_is_refused(options: dict[str, Any]) -> None:
    features = server_events.Features("mx.example.test", 1000, **options)
    with pytest.raises(ValueError, match="certificate"):
        smtp_server.SmtpListener(
            lambda _: RecordingPolicy(Recorded(), None), features=features, failed=print, implicit_tls=not options
        )


@pytest.mark.parametrize(
    "limits, refusal",
    [
        (smtp_server.ListenerLimits(connections=2), b"421 4.3.2 "),
        (smtp_server.ListenerLimits(connections_per_address=2), b"421 4.7.0 "),
    ],
)
async def test_one_connection_too_many_is_turned_away_while_all_others_have_logged_in_or_send(
    limits: smtp_server.ListenerLimits, refusal: bytes
) -> None:
    async with running(AUTHENTICATING, limits=limits) as server, connect(server.address) as authenticated:
        await authenticated.ask(LOGIN, replies=3)
        async with connect(server.address) as sending:
            await sending.ask(TRANSACTION, replies=5)
            async with connect(server.address) as third:
                assert (await third.reply()).startswith(refusal)
                assert await third.rest() == b""
            await sending.ask(b"x\r\n.\r\nQUIT\r\n", replies=2)
            await sending.rest()

        async def another() -> bytes:
            async with connect(server.address) as client:
                return await client.reply()

        async with asyncio.timeout(30):
            while not (await another()).startswith(b"220 "):
                await asyncio.sleep(0)
        assert await authenticated.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]


@pytest.mark.usefixtures("old_at_once")
async def test_silent_strangers_make_room_the_oldest_first_whatever_else_they_say() -> None:
    limits = smtp_server.ListenerLimits(connections=3)
    async with (
        running(limits=limits) as server,
        connect(server.address) as first,
        connect(server.address, local="127.1.0.1") as sending,
    ):
        await first.ask(b"EHLO x\r\n", replies=2)
        await sending.ask(TRANSACTION, replies=5)
        async with connect(server.address, local="127.2.0.1") as second:
            await second.reply()
            # A command that gets nowhere does not keep the place.
            assert await first.ask(b"NOOP\r\nMAIL FROM:<a@example.org>\r\n", replies=2)
            async with connect(server.address, local="127.3.0.1") as third:
                assert (await third.reply()).startswith(b"220 ")
                assert await first.rest() == b"421 4.3.2 Too many connections; try again later\r\n"
                async with connect(server.address, local="127.4.0.1") as fourth:
                    assert (await fourth.reply()).startswith(b"220 ")
                    assert (await second.rest()).startswith(b"421 4.3.2 ")
                    assert (await sending.ask(b"x\r\n.\r\n"))[0].startswith(b"250 ")
                    assert (await third.ask(b"NOOP\r\n"))[0].startswith(b"250 ")


@pytest.mark.usefixtures("old_at_once")
async def test_a_client_that_has_logged_in_before_keeps_its_place_while_strangers_press() -> None:
    limits = smtp_server.ListenerLimits(connections=3, connections_per_address=2)
    async with running(AUTHENTICATING, limits=limits) as server, contextlib.AsyncExitStack() as strangers:
        async with connect(server.address) as earlier:
            await earlier.ask(LOGIN + b"QUIT\r\n", replies=4)
            await earlier.rest()

        async def press(network: int) -> None:
            for host in range(1, 4):
                await strangers.enter_async_context(connect(server.address, local=f"127.{network}.0.{host}"))

        await press(1)
        async with connect(server.address) as known:
            assert (await known.reply()).startswith(b"220 ")
            await press(2)
            # The last of them has been let in, in the place of another.
            async with connect(server.address, local="127.3.0.1") as last:
                assert (await last.reply()).startswith(b"220 ")
            assert (await known.ask(LOGIN, replies=2))[-1].startswith(b"235 ")


async def test_sessions_of_one_client_do_not_close_the_listener() -> None:
    """The silent ones make room, and those in a transaction do not; there is a place for somebody else."""
    limits = smtp_server.ListenerLimits(connections=10)
    mail = b"MAIL FROM:<a@example.org>\r\n"
    async with running(AUTHENTICATING, limits=limits) as server, contextlib.AsyncExitStack() as stack:
        sessions = [await stack.enter_async_context(connect(server.address)) for _ in range(8)]
        for place, session in enumerate(sessions):
            assert (await session.ask(LOGIN, replies=3))[-1].startswith(b"235 ")
            if place != 4:
                await session.ask(mail)
        ninth = await stack.enter_async_context(connect(server.address))
        assert (await ninth.ask(LOGIN + mail, replies=4))[-1].startswith(b"250 ")
        assert (await sessions[4].rest()).startswith(b"421 4.3.2 ")
        tenth = await stack.enter_async_context(connect(server.address))
        refusal = b"421 4.7.0 Too many connections of your account; try again later"
        assert (await tenth.ask(LOGIN, replies=3))[-1] == refusal
        async with connect(server.address, local="127.1.0.1") as other:
            assert (await other.ask(LOGIN, replies=3))[-1].startswith(b"235 ")


async def test_stopping_lets_idle_clients_go_and_transactions_finish() -> None:
    gate = Gate()
    async with (
        running(take=gate) as server,
        connect(server.address) as idle,
        connect(server.address) as early,
        connect(server.address) as late,
    ):
        await idle.ask(b"EHLO x\r\n", replies=2)
        await early.ask(TRANSACTION, replies=5)
        await late.ask(TRANSACTION + b"x\r\n.\r\n", replies=5)
        await gate.reached.wait()
        stopping = asyncio.create_task(server.listener.stop(grace_seconds=30))
        assert (await idle.rest()).startswith(b"421 4.3.2 ")
        gate.opened.set()
        assert (await late.rest()).startswith(b"250 2.0.0 taken\r\n421 4.3.2 ")
        await early.send(b"y\r\n.\r\n")
        assert (await early.rest()).startswith(b"250 2.0.0 taken\r\n421 4.3.2 ")
        await stopping
        assert len(server.kept.messages) == 2


async def test_draining_ends_sessions_after_a_message_and_lets_others_send_one() -> None:
    async with (
        running() as server,
        connect(server.address) as used,
        connect(server.address) as early,
        connect(server.address) as fresh,
    ):
        await used.ask(TRANSACTION + b"x\r\n.\r\n", replies=6)
        await early.ask(TRANSACTION, replies=5)
        await fresh.ask(b"EHLO x\r\n", replies=2)
        server.listener.drain()
        assert await used.rest() == CLOSING
        await early.send(b"y\r\n.\r\n")
        assert await early.rest() == b"250 2.0.0 taken\r\n" + CLOSING
        assert (await fresh.ask(b"RSET\r\n"))[0].startswith(b"250 2.0.0 ")
        async with connect(server.address) as late:
            await late.ask(TRANSACTION, replies=5)
            # What was sent with the message is answered first.
            await late.send(b"z\r\n.\r\nNOOP\r\nQUIT\r\n")
            replies = (await late.rest()).splitlines()
            assert [reply[:3] for reply in replies] == [b"250", b"250", b"221"]
        assert len(server.kept.messages) == 3


async def test_what_is_not_finished_in_the_grace_time_is_cut() -> None:
    gate = Gate()
    async with (
        running(take=gate) as server,
        connect(server.address) as receiving,
        connect(server.address) as waiting,
    ):
        await receiving.ask(TRANSACTION, replies=5)
        await waiting.ask(TRANSACTION + b"x\r\n.\r\n", replies=5)
        await gate.reached.wait()
        await server.listener.stop(grace_seconds=0)
        assert await receiving.rest() == b""
        assert await waiting.rest() == b""
