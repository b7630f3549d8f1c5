"""One connection of an SMTP server: foreign clients are served, answers come in order, and nobody holds it up."""

import asyncio
import base64
import contextlib
import email.message
import itertools
import smtplib
import socket
import ssl

import aiosmtplib
import pytest

from postroad.network.smtp import content_spool, smtp_server
from postroad.protocol.smtp import server_commands, server_events, values
from tests import passing_time
from tests.network.recording_listener import TIMEOUT_SECONDS, TRANSACTION, Gate, connect, running

SMALL = b"Subject: x\r\n\r\nHello\r\n.\r\n"
MESSAGE = b"Subject: x\r\n\r\nHello\r\n.\r\n..\r\n"


async def test_the_client_of_the_standard_library_sends_and_gets_the_bytes_through() -> None:
    def send(address: tuple[str, int]) -> dict[str, tuple[int, bytes]]:
        with smtplib.SMTP(*address) as client:
            return client.sendmail("a@example.org", ["b@example.net", "c@example.net"], MESSAGE)

    async with running() as server:
        assert await asyncio.to_thread(send, server.address) == {}
        (sent,) = server.kept.messages
    assert (sent.sender, sent.recipients, sent.content) == (
        "a@example.org",
        ("b@example.net", "c@example.net"),
        (MESSAGE,),
    )
    assert server.kept.sessions[0].client_address == "127.0.0.1"


async def test_another_client_sends_many_messages_over_one_connection() -> None:
    message = email.message.EmailMessage()
    message["From"], message["To"], message["Subject"] = "a@example.org", "jürgen@example.net", "Grüße"
    message.set_content("Hello\n" * 100_000)
    async with running() as server:
        host, port = server.address
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False) as client:
            for _ in range(3):
                errors, text = await client.send_message(message)
                assert (errors, text) == ({}, "2.0.0 taken")
    assert len(server.kept.messages) == 3
    assert all(sent.needs_smtputf8 and sent.size > 600_000 for sent in server.kept.messages)


async def test_a_client_secures_the_session_and_authenticates(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    features = server_events.Features("mx.example.test", 1000, starttls=True, auth=True)
    async with running(features, tls=lambda: server_tls) as server:
        host, port = server.address
        client = aiosmtplib.SMTP(hostname=host, port=port, start_tls=True, tls_context=client_tls)
        async with client:
            await client.ehlo()
            with pytest.raises(aiosmtplib.SMTPAuthenticationError, match="535"):
                await client.auth_plain("jo", "wrong")
            await client.auth_login("jo", "secret")
            await client.sendmail("a@example.org", ["b@example.net"], b"x\r\n")
        (session,) = server.kept.sessions
        assert (session.is_secure, session.is_authenticated) == (True, True)
        assert len(server.kept.messages) == 1


async def test_tls_may_be_there_from_the_first_byte(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    async with running(tls=lambda: server_tls, implicit_tls=True) as server:
        host, port = server.address
        async with aiosmtplib.SMTP(hostname=host, port=port, use_tls=True, tls_context=client_tls) as client:
            await client.sendmail("a@example.org", ["b@example.net"], b"x\r\n")
        assert server.kept.sessions[0].is_secure


async def test_a_client_that_cannot_shake_hands_is_let_go(server_tls: ssl.SSLContext) -> None:
    features = server_events.Features("mx.example.test", 1000, starttls=True)
    async with running(features, tls=lambda: server_tls) as server:
        async with connect(server.address) as client:
            await client.ask(b"EHLO x\r\nSTARTTLS\r\n", replies=3)
            await client.send(b"MAIL FROM:<a@example.org>\r\n" * 10)
            await client.rest()
        async with connect(server.address) as client:
            assert (await client.reply()).startswith(b"220 ")
        await server.listener.stop(grace_seconds=30)
        assert server.kept.problems == []


async def test_answers_that_take_their_time_come_in_order() -> None:
    gate = Gate()
    async with running(take=gate) as server, connect(server.address) as client:
        await client.send(TRANSACTION + b"x\r\n.\r\nNOOP\r\nMAIL FROM:<>\r\nQUIT\r\n")
        replies = [(await client.reply())[:3] for _ in range(5)]
        assert replies == [b"220", b"250", b"250", b"250", b"354"]
        await gate.reached.wait()
        gate.opened.set()
        said = (await client.rest()).split(b"\r\n")
        assert said[:3] == [b"250 2.0.0 taken", b"250 2.0.0 OK", b"250 2.1.0 Sender OK"]
        assert said[3].startswith(b"221 ")


async def test_a_client_that_has_said_all_still_hears_its_answers() -> None:
    gate = Gate()
    async with running(take=gate) as server, connect(server.address) as client:
        await client.ask(TRANSACTION, replies=5)
        await client.send(b"x\r\n.\r\nNOOP\r\n")
        client.writer.write_eof()
        await gate.reached.wait()
        gate.opened.set()
        assert await client.rest() == b"250 2.0.0 taken\r\n250 2.0.0 OK\r\n"


class VerbosePolicy(smtp_server.SessionPolicy):
    """A policy with words of its own for what cannot be taken."""

    async def refused(self, verb: str, reply: values.Reply) -> smtp_server.ReplyOrClose:
        return values.Reply(reply.code, "not that", reply.enhanced)

    def message(self, transaction: values.MailTransaction) -> smtp_server.PolicyDecision:
        raise AssertionError(transaction)


async def test_a_policy_has_its_own_words_for_what_cannot_be_taken() -> None:
    async with running(make_policy=lambda _session: VerbosePolicy()) as server, connect(server.address) as client:
        replies = await client.ask(TRANSACTION + b"a\rb\r\n.\r\n", replies=6)
        assert replies[-1] == b"550 5.6.0 not that"
        assert await client.ask(b"MAIL FROM:<> SIZE=1000001\r\n") == [b"552 5.3.4 not that"]
        assert await client.ask(b"MAIL FROM:<a>\r\n") == [b"553 5.1.7 not that"]
    async with running() as server, connect(server.address) as client:
        replies = await client.ask(TRANSACTION + b"a\rb\r\n.\r\n", replies=6)
        assert replies[-1].startswith(b"550 5.6.0 Bare CR in the message")


async def test_a_client_that_runs_ahead_of_its_answers_is_held_back() -> None:
    gate = Gate()
    async with running(take=gate) as server:
        with socket.create_connection(server.address) as client:
            client.settimeout(0)
            await asyncio.get_running_loop().sock_sendall(client, TRANSACTION + b"x\r\n.\r\n")
            await gate.reached.wait()
            # A server that read on would make room in each of these turns of the loop.
            blocked = 0
            while blocked < 100:
                try:
                    client.send(b"NOOP\r\n" * 10_000)
                    blocked = 0
                except BlockingIOError:
                    blocked += 1
                await asyncio.sleep(0)
            assert len(server.kept.messages) == 1


async def test_a_client_with_much_to_say_lets_others_have_their_turn() -> None:
    lenient = server_events.Features("mx.example.test", 1000, idle_commands=10**9)
    turns: list[int] = []
    count = 0

    class Counting(smtp_server.SessionPolicy):
        def hello(self, name: str) -> smtp_server.PolicyDecision:
            nonlocal count
            count += 1
            return super().hello(name)

        def message(self, transaction: values.MailTransaction) -> smtp_server.PolicyDecision:
            raise AssertionError(transaction)

    async def watch() -> None:
        while True:
            turns.append(count)
            await asyncio.sleep(0)

    async with running(lenient, make_policy=lambda _session: Counting()) as server, connect(server.address) as client:
        watching = asyncio.create_task(watch())
        replies = await client.ask(b"HELO x\r\n" * 1000 + b"NOOP\r\n", replies=1002)
        watching.cancel()
        assert replies[-1] == b"250 2.0.0 OK"
    longest = max(after - before for before, after in itertools.pairwise(turns))
    assert (count, longest) == (1000, smtp_server.MAX_EVENTS_PER_TURN)


async def test_who_has_said_much_and_hangs_up_is_still_answered() -> None:
    lenient = server_events.Features("mx.example.test", 1000, idle_commands=10**9)
    async with running(lenient) as server, connect(server.address) as client:
        await client.reply()
        await client.send(b"HELO x\r\n" * 1000)
        client.writer.write_eof()
        assert (await client.rest()).count(b"250 ") == 1000


async def test_who_is_gone_is_obeyed_no_more() -> None:
    heard: list[str] = []
    gone = asyncio.Event()

    class Hearing(smtp_server.SessionPolicy):
        def hello(self, name: str) -> smtp_server.PolicyDecision:
            heard.append(name)
            if name == "last":
                (connection,) = server.listener._connections
                connection.transport.abort()
            return super().hello(name)

        def closed(self) -> None:
            gone.set()

        def message(self, transaction: values.MailTransaction) -> smtp_server.PolicyDecision:
            raise AssertionError(transaction)

    async with running(make_policy=lambda _session: Hearing()) as server, connect(server.address) as client:
        await client.send(b"HELO x\r\nHELO last\r\n" + b"HELO never\r\n" * 10)
        await client.rest()
        await gone.wait()
    assert heard == ["x", "last"]


async def replies_to_a_client_that_asks_on(address: tuple[str, int]) -> bytes:
    """Everything that a server says to a client that sends a command every 20 ms, until it closes the connection.

    A command that crosses the close is answered with a reset. A stream whose write fails drops what it has not read,
    and with it the last reply; a socket does not.
    """
    loop = asyncio.get_running_loop()
    said = b""
    with socket.socket() as client:
        client.settimeout(0)

        async def ask_on() -> None:
            with contextlib.suppress(ConnectionError):
                while True:
                    await loop.sock_sendall(client, b"NOOP\r\n")
                    await asyncio.sleep(0.02)

        async with asyncio.timeout(TIMEOUT_SECONDS):
            await loop.sock_connect(client, address)
            asking = asyncio.create_task(ask_on())
            with contextlib.suppress(ConnectionError):
                while data := await loop.sock_recv(client, 65_536):
                    said += data
        asking.cancel()
        await asyncio.wait({asking})
    return said


async def test_a_stranger_who_does_not_log_in_is_let_go_and_a_customer_may_stay() -> None:
    features = server_events.Features("mx.example.test", 1000, auth=True, auth_without_tls=True)
    limits = smtp_server.ListenerLimits(login_seconds=200)
    async with (
        running(features, limits=limits) as server,
        connect(server.address) as customer,
    ):
        login = base64.b64encode(b"\0jo\0secret")
        replies = await customer.ask(b"EHLO x\r\nAUTH PLAIN " + login + b"\r\n", replies=3)
        assert replies[-1].startswith(b"235 ")

        stranger = replies_to_a_client_that_asks_on(server.address)
        assert b"421 4.4.2 Authentication timeout" in await passing_time.meanwhile(server.listener, 201, stranger)
        assert await customer.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]


class Broken(smtp_server.SessionPolicy):
    """A policy with a bug in each of the two ways."""

    def mail(self, sender: str, parameters: server_commands.Parameters) -> smtp_server.PolicyDecision:
        if sender == "bug@example.org":
            raise ZeroDivisionError
        return super().mail(sender, parameters)

    async def message(self, transaction: values.MailTransaction) -> smtp_server.ReplyOrClose:
        raise LookupError(transaction.sender)


async def test_a_bug_is_reported_and_the_client_may_try_again() -> None:
    async with running(make_policy=lambda _session: Broken()) as server, connect(server.address) as client:
        replies = await client.ask(b"EHLO x\r\nMAIL FROM:<bug@example.org>\r\n", replies=3)
        assert replies[-1].startswith(b"451 4.3.0 ")
        replies = await client.ask(TRANSACTION.partition(b"\r\n")[2] + b"x\r\n.\r\n", replies=4)
        assert replies[-1].startswith(b"451 4.3.0 ")
        assert (await client.ask(b"NOOP\r\n"))[0] == b"250 2.0.0 OK"
        assert [type(problem) for problem in server.kept.problems] == [ZeroDivisionError, LookupError]


async def test_no_reply_hangs_up() -> None:
    async with running(take=lambda _envelope: None) as server, connect(server.address) as client:
        await client.ask(TRANSACTION, replies=5)
        await client.send(b"x\r\n.\r\n")
        assert await client.rest() == b""


async def test_a_message_is_accepted_although_its_client_is_gone() -> None:
    gate = Gate()
    accepted = asyncio.Event()

    async def take(transaction: values.MailTransaction) -> smtp_server.ReplyOrClose:
        answer = await gate(transaction)
        accepted.set()
        return answer

    async with running(take=take) as server:
        async with connect(server.address) as client:
            await client.ask(TRANSACTION + b"x\r\n.\r\n", replies=5)
            await gate.reached.wait()
        gate.opened.set()
        await accepted.wait()
        async with connect(server.address) as client:
            assert (await client.reply()).startswith(b"220 ")


@pytest.mark.parametrize("trickle", [b"", b"NOO"])
async def test_a_client_that_says_nothing_is_let_go(trickle: bytes) -> None:
    limits = smtp_server.ListenerLimits(command_seconds=100)
    async with running(limits=limits) as server, connect(server.address) as client:
        await client.reply()
        await client.send(trickle)
        assert (await passing_time.meanwhile(server.listener, 101, client.rest())).startswith(b"421 4.4.2 ")


async def test_bytes_that_trickle_in_buy_no_time() -> None:
    limits = smtp_server.ListenerLimits(content_seconds=0.2)
    async with running(limits=limits) as server, connect(server.address) as client:
        await client.ask(TRANSACTION, replies=5)

        async def trickle() -> None:
            while True:
                await client.send(b"x\r\n")
                await asyncio.sleep(0.01)

        trickling = asyncio.create_task(trickle())
        await client.rest()
        trickling.cancel()
        await asyncio.wait({trickling})
        assert server.kept.messages == []


async def test_a_client_that_does_not_read_is_cut() -> None:
    limits = smtp_server.ListenerLimits(write_seconds=0.1)
    lenient = server_events.Features("mx.example.test", 1000, idle_commands=10**9)
    async with running(lenient, limits=limits) as server:
        with socket.create_connection(server.address) as client:
            client.settimeout(0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            loop = asyncio.get_running_loop()

            async def flood() -> None:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    while True:
                        await loop.sock_sendall(client, b"HELP\r\n" * 10_000)

            with pytest.raises(ConnectionError):
                await flood()


async def test_a_line_of_a_hundred_thousand_characters_is_content_as_any_other() -> None:
    line = b"x" * 100_000 + b"\r\n"
    async with running() as server, connect(server.address) as client:
        await client.ask(TRANSACTION, replies=5)
        assert await client.ask(line + b".\r\n") == [b"250 2.0.0 taken"]
        assert server.kept.messages[0].content == (line,)


# Large messages: on disk while they arrive, and processed in turn.

LARGE = b"Subject: x\r\n\r\n" + b"0123456789abcde\r\n" * 40_000


async def test_a_large_message_is_on_disk_while_it_arrives_and_complete_in_the_end() -> None:
    spool = content_spool.ContentSpool(megabytes=10)
    async with running(spool=spool) as server, connect(server.address) as client:
        assert (await client.ask(TRANSACTION, replies=5))[-1].startswith(b"354")
        await client.send(LARGE)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while spool.shares.free == 10:
                await asyncio.sleep(0.01)
        assert await client.ask(b".\r\nNOOP\r\n", replies=2) == [b"250 2.0.0 taken", b"250 2.0.0 OK"]
        (sent,) = server.kept.messages
        assert sent.content == (LARGE,)
        assert spool.shares.free == 10


async def test_who_leaves_in_the_middle_of_a_large_message_leaves_no_file() -> None:
    spool = content_spool.ContentSpool(megabytes=10)
    async with running(spool=spool) as server:
        async with connect(server.address) as client:
            await client.ask(TRANSACTION, replies=5)
            await client.send(LARGE)
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while spool.shares.free == 10:
                    await asyncio.sleep(0.01)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while spool.shares.free < 10:
                await asyncio.sleep(0.01)
        assert server.kept.messages == []


async def test_a_large_message_without_room_may_be_sent_again() -> None:
    spool = content_spool.ContentSpool(megabytes=1)
    other = spool.open("somebody else")
    assert other.write(b"x")
    async with running(spool=spool) as server, connect(server.address) as client:
        await client.ask(TRANSACTION, replies=5)
        (refusal,) = await client.ask(LARGE + b".\r\n")
        assert refusal == b"452 4.3.1 Insufficient system storage; try again later"
        other.close()
        again = b"MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n"
        assert (await client.ask(again, replies=3))[-1].startswith(b"354")
        assert await client.ask(LARGE + b".\r\n") == [b"250 2.0.0 taken"]
    assert [sent.content for sent in server.kept.messages] == [(LARGE,)]


async def test_a_large_message_whose_turn_does_not_come_may_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_spool, "TURN_SECONDS", 0.01)
    spool = content_spool.ContentSpool()
    async with running(spool=spool) as server, connect(server.address) as client, spool.turn("a"), spool.turn("a"):
        await client.ask(TRANSACTION, replies=5)
        (refusal,) = await client.ask(LARGE + b".\r\n")
        assert refusal == b"451 4.3.2 Too many large messages at the same time; try again later"
        # Small ones do not wait.
        again = b"MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n"
        await client.ask(again, replies=3)
        assert await client.ask(SMALL) == [b"250 2.0.0 taken"]
    assert [len(sent.content[0]) < 100 for sent in server.kept.messages] == [True]


# Content that trickles.

SLOW = smtp_server.ListenerLimits(min_content_speed=1000, speed_grace_seconds=0.2)
TOO_SLOW = b"421 4.4.2 The message content arrives too slowly"


async def test_content_that_arrives_too_slowly_ends_the_session() -> None:
    async with running(limits=SLOW) as server, connect(server.address) as client:
        await client.ask(TRANSACTION, replies=5)
        assert (await client.ask(b"Subject: x\r\n"))[-1] == TOO_SLOW
        assert await client.rest() == b""
        assert server.kept.messages == []


async def test_chunks_that_trickle_are_too_slow_together() -> None:
    start = b"EHLO x\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\n"
    async with running(limits=SLOW) as server, connect(server.address) as client:
        await client.ask(start, replies=4)
        reply = b""
        while reply != TOO_SLOW:
            (reply,) = await client.ask(b"BDAT 10\r\n" + b"x" * 10)
            assert reply in (b"250 2.0.0 Chunk accepted", TOO_SLOW)
            await asyncio.sleep(0.05)
        assert await client.rest() == b""


async def test_a_client_is_not_slow_while_a_message_is_accepted() -> None:
    gate = Gate()
    async with running(limits=SLOW, take=gate) as server, connect(server.address) as client:
        again = b"MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n"
        await client.ask(TRANSACTION + SMALL + again, replies=5)
        await gate.reached.wait()
        await asyncio.sleep(0.5)
        gate.opened.set()
        assert [(await client.reply())[:3] for _ in range(4)] == [b"250", b"250", b"250", b"354"]
