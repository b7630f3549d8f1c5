"""A connection delivers to servers of every kind, and whatever they do, `deliver` has a result for each recipient."""

import asyncio
import contextlib
import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroad.model.delivery import tls_policy
from postroad.network.smtp import smtp_connection
from postroad.network.smtp.smtp_connection import ConnectFailed, Destination, SmtpConnection, Timeouts
from postroad.protocol.smtp import values
from postroad.protocol.smtp.values import RecipientResult, Stage
from tests import smtp_peers
from tests.smtp_peers import CLOSE, ENDLESS, RESET, SILENCE, Drip, Held, Script

PLAIN = tls_policy.TlsPolicy(tls_policy.Mode.PLAIN)
# Long enough for a busy machine; what must run out in a test has SHORT_TIMEOUTS.
LONG_TIMEOUTS = Timeouts(connect=20, reply=20, content=20)
SHORT_TIMEOUTS = Timeouts(connect=0.2, reply=0.2, content=0.2)
CONTENT = b"Subject: x\r\n\r\n.hello\r\n"
ENVELOPE = values.MailTransaction("a@example.com", ("b@example.org", "c@example.org"), (CONTENT,))


async def connect(port: int, timeouts: Timeouts = LONG_TIMEOUTS, *, address: str = "127.0.0.1") -> SmtpConnection:
    destination = Destination("peer.example", address, port, PLAIN)
    return await smtp_connection.connect(destination, hello_name="me.example", timeouts=timeouts)


@contextlib.asynccontextmanager
async def connected(peer: smtp_peers.Peer, timeouts: Timeouts = LONG_TIMEOUTS) -> AsyncIterator[SmtpConnection]:
    connection = await connect(peer.port, timeouts)
    try:
        yield connection
    finally:
        await connection.close()


async def failure(port: int, timeouts: Timeouts = LONG_TIMEOUTS) -> RecipientResult:
    with pytest.raises(ConnectFailed) as caught:
        await connect(port, timeouts)
    return caught.value.result


async def delivered(script: Script, timeouts: Timeouts = LONG_TIMEOUTS) -> tuple[RecipientResult, ...]:
    """The results of one delivery to a peer that does this; the connection must be of no more use."""
    async with smtp_peers.serving(script) as peer, connected(peer, timeouts) as connection:
        results = await connection.deliver(ENVELOPE)
        assert not connection.is_usable
        return results


@pytest.mark.parametrize("extensions", [(), ("PIPELINING",), smtp_peers.ALL_EXTENSIONS])
async def test_several_messages_go_over_one_connection(extensions: tuple[str, ...]) -> None:
    async with smtp_peers.serving(extensions=extensions) as peer:
        async with connected(peer) as connection:
            for number in range(3):
                results = await connection.deliver(ENVELOPE)
                assert [(result.stage, result.reply) for result in results] == [
                    (Stage.CONTENT, values.Reply(250, "taken", "2.0.0"))
                ] * 2
                assert connection.deliveries == number + 1
                assert connection.is_usable
            assert connection.tls == ""
        assert peer.connections == 1
        assert [transaction.content for transaction in peer.transactions] == [CONTENT] * 3
        assert peer.transactions[0].recipients == ["RCPT TO:<b@example.org>", "RCPT TO:<c@example.org>"]
        assert peer.verbs()[-1] == "QUIT"


async def test_pipelined_commands_do_not_wait_for_replies() -> None:
    held: Script = {"MAIL": Held("250 ok"), "RCPT": Held("250 ok")}
    async with smtp_peers.serving(held) as peer, connected(peer) as connection:
        await connection.deliver(ENVELOPE)
        assert len(peer.transactions) == 1


async def test_a_server_without_pipelining_is_never_spoken_to_out_of_turn() -> None:
    held: Script = {"MAIL": Held("250 ok")}
    async with smtp_peers.serving(held, extensions=()) as peer, connected(peer, SHORT_TIMEOUTS) as connection:
        (result, _) = await connection.deliver(ENVELOPE)
        assert result == RecipientResult(
            Stage.MAIL, cause=values.Cause.REPLY_TIMED_OUT, detail="the destination did not answer in time"
        )
        assert peer.verbs() == ["EHLO", "MAIL"]


async def test_what_cannot_be_sent_costs_the_server_nothing() -> None:
    async with smtp_peers.serving(extensions=("SIZE 10",)) as peer, connected(peer) as connection:
        (result, _) = await connection.deliver(ENVELOPE)
        assert result.permanent
        assert connection.is_usable
        assert connection.deliveries == 0
        assert peer.verbs() == ["EHLO"]


# A peer that vanishes.

VERBS = {"MAIL": Stage.MAIL, "RCPT": Stage.RECIPIENT, "DATA": Stage.DATA}


@pytest.mark.parametrize("act", [CLOSE, RESET])
@pytest.mark.parametrize("verb", VERBS)
async def test_a_connection_lost_before_the_content_is_not_in_doubt(verb: str, act: smtp_peers.Act) -> None:
    for result in await delivered({verb: act}):
        assert (result.stage, result.reply, result.in_doubt) == (VERBS[verb], None, False)
        assert "connection" in result.detail


@pytest.mark.parametrize("act", [CLOSE, RESET, SILENCE])
async def test_a_connection_lost_after_the_final_dot_is_in_doubt(act: smtp_peers.Act) -> None:
    for result in await delivered({"CONTENT": act}, Timeouts(connect=20, reply=20, content=0.2)):
        assert (result.stage, result.reply, result.in_doubt) == (Stage.CONTENT, None, True)


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "DATA"])
async def test_a_server_that_falls_silent_times_out(verb: str) -> None:
    for result in await delivered({verb: SILENCE}, Timeouts(connect=20, reply=0.2, content=20)):
        assert result == RecipientResult(
            VERBS[verb], cause=values.Cause.REPLY_TIMED_OUT, detail="the destination did not answer in time"
        )


async def test_a_tarpit_wins_no_time_with_single_octets() -> None:
    # The whole reply would take a minute.
    drip = Drip("250 " + "x" * 1200, 0.05)
    for result in await delivered({"MAIL": drip}, Timeouts(connect=20, reply=0.3, content=20)):
        assert result == RecipientResult(
            Stage.MAIL, cause=values.Cause.REPLY_TIMED_OUT, detail="the destination did not answer in time"
        )


@pytest.mark.parametrize("verb", ["MAIL", "RCPT", "DATA", "CONTENT"])
async def test_421_is_the_answer_and_the_end(verb: str) -> None:
    for result in await delivered({verb: ("421 4.3.2 going down", CLOSE)}):
        assert result == RecipientResult(
            {**VERBS, "CONTENT": Stage.CONTENT}[verb], values.Reply(421, "going down", "4.3.2")
        )


@pytest.mark.parametrize("answer", [ENDLESS, b"x" * 5000, b"hello\r\n", b"250-a\r\n251 b\r\n"])
async def test_nonsense_is_not_a_verdict(answer: smtp_peers.Simple) -> None:
    for result in await delivered({"MAIL": answer}):
        assert (result.stage, result.reply, result.permanent, result.in_doubt) == (Stage.MAIL, None, False, False)
        assert result.detail.startswith("the destination sent")


@pytest.mark.parametrize("last_words", [("421 4.4.2 idle too long",), ("421 4.4.2 idle too long", CLOSE), (CLOSE,)])
async def test_an_idle_connection_that_the_server_ends_is_not_used(last_words: tuple[smtp_peers.Simple, ...]) -> None:
    after = ("250 2.0.0 taken", *last_words)
    async with smtp_peers.serving({"CONTENT": after}) as peer, connected(peer) as connection:
        results = await connection.deliver(ENVELOPE)
        assert [result.stage for result in results] == [Stage.CONTENT] * 2
        assert not any(result.in_doubt for result in results)
        async with asyncio.timeout(smtp_peers.TIMEOUT_SECONDS):
            while connection.is_usable:
                await asyncio.sleep(0)
        for result in await connection.deliver(ENVELOPE):
            assert (result.stage, result.reply, result.in_doubt) == (Stage.MAIL, None, False)


# Large content.

LARGE = (b"x" * 998 + b"\r\n") * 10_000


class Watched:
    """A connection's transport, with an eye on its buffer."""

    def __init__(self, connection: SmtpConnection) -> None:
        assert connection._transport is not None
        self._transport = connection._transport
        self.highest = 0

    def write(self, data: bytes) -> None:
        self._transport.write(data)
        self.highest = max(self.highest, self._transport.get_write_buffer_size())

    def abort(self) -> None:
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()


async def test_large_content_arrives_whole_and_leaves_in_small_portions() -> None:
    async with smtp_peers.serving() as peer, connected(peer) as connection:
        watched = Watched(connection)
        connection._transport = watched  # type: ignore[assignment]
        (result,) = await connection.deliver(values.MailTransaction("", ("b@example.org",), (LARGE[:77], LARGE[77:])))
        assert result.reply == values.Reply(250, "taken", "2.0.0")
        assert peer.transactions[0].content == LARGE
        assert 0 < watched.highest < 1024 * 1024


@pytest.mark.parametrize("act", [smtp_peers.CLOSE, smtp_peers.RESET])
async def test_a_hang_up_while_the_content_leaves_is_not_in_doubt(act: smtp_peers.Act) -> None:
    # Larger than what the systems on both sides keep in between.
    content = b"a line that goes on and on\r\n" * 400_000
    async with smtp_peers.serving({"RECEIVING": act}, receive_buffer=65_536) as peer, connected(peer) as connection:
        (result,) = await connection.deliver(values.MailTransaction("", ("b@example.org",), (content,)))
        assert result.reply is None
        assert not result.in_doubt
        assert peer.transactions == []


async def test_a_server_that_stops_reading_large_content_times_out_without_doubt() -> None:
    script: Script = {"RECEIVING": SILENCE}
    timeouts = Timeouts(connect=20, reply=20, content=0.5)
    async with smtp_peers.serving(script) as peer, connected(peer, timeouts) as connection:
        (result,) = await connection.deliver(values.MailTransaction("", ("b@example.org",), (LARGE * 2,)))
        assert (result.stage, result.in_doubt) == (Stage.CONTENT, False)
        assert "in time" in result.detail


async def test_a_refusal_in_the_middle_of_large_content_is_heard() -> None:
    script: Script = {"RECEIVING": ("552 5.3.4 too much", SILENCE)}
    async with smtp_peers.serving(script) as peer, connected(peer) as connection:
        (result,) = await connection.deliver(values.MailTransaction("", ("b@example.org",), (LARGE * 2,)))
        assert result == RecipientResult(Stage.DATA, values.Reply(552, "too much", "5.3.4"))
        assert not connection.is_usable


# The beginning and the end.


async def test_a_refused_connection_says_where_and_why() -> None:
    with smtp_peers.refusing_port() as port:
        result = await failure(port)
    assert result == RecipientResult(
        Stage.CONNECT,
        cause=values.Cause.CONNECTION_REFUSED,
        detail=f"connecting to peer.example [127.0.0.1]:{port}: connection refused",
    )


@pytest.mark.parametrize(
    "number, cause",
    [
        (errno.ECONNREFUSED, values.Cause.CONNECTION_REFUSED),
        (errno.ETIMEDOUT, values.Cause.CONNECTION_TIMED_OUT),
        (errno.ENETUNREACH, values.Cause.HOST_UNREACHABLE),
        (errno.EHOSTUNREACH, values.Cause.HOST_UNREACHABLE),
        (errno.EACCES, values.Cause.CONNECTION_FAILED),
    ],
)
async def test_the_cause_of_a_failed_connection_follows_from_the_error_number(
    number: int, cause: values.Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise OSError(number, "connection refused")  # the text does not count

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", fail)
    assert (await failure(25)).cause is cause
    # A destination can cause each of them: none is a matter of settings, which would keep its mail for ever.
    destination = Destination("peer.example", "127.0.0.1", 25, PLAIN, source_address="127.0.0.1")
    with pytest.raises(ConnectFailed) as caught:
        await smtp_connection.connect(destination, hello_name="me.example", timeouts=LONG_TIMEOUTS)
    assert caught.value.result.cause is cause


async def test_a_black_hole_times_out() -> None:
    with smtp_peers.black_hole_port() as port:
        result = await failure(port, SHORT_TIMEOUTS)
    assert result.stage is Stage.CONNECT
    assert "no answer within 0.2 s" in result.detail


async def test_an_address_that_is_not_of_this_host_is_a_matter_of_settings() -> None:
    destination = Destination("peer.example", "127.0.0.1", 9, PLAIN, source_address="192.0.2.1")
    with pytest.raises(ConnectFailed) as caught:
        await smtp_connection.connect(destination, hello_name="me.example", timeouts=LONG_TIMEOUTS)
    result = caught.value.result
    assert (result.stage, result.cause) == (Stage.CONNECT, values.Cause.CONFIGURATION)
    assert result.detail.endswith("cannot send from 192.0.2.1: cannot assign requested address")


async def test_authorities_that_cannot_be_read_are_a_matter_of_settings(tmp_path: Path) -> None:
    destination = Destination("peer.example", "127.0.0.1", 9, tls_policy.TlsPolicy(tls_policy.Mode.VERIFIED))
    with pytest.raises(ConnectFailed) as caught:
        await smtp_connection.connect(
            destination, hello_name="me.example", timeouts=LONG_TIMEOUTS, ca_file=str(tmp_path / "absent.pem")
        )
    result = caught.value.result
    assert (result.stage, result.cause) == (Stage.CONNECT, values.Cause.CONFIGURATION)
    assert result.detail.endswith("absent.pem cannot be used: no such file or directory")


async def test_a_connection_comes_from_the_address_that_was_asked_for() -> None:
    async with smtp_peers.serving() as peer:
        destination = Destination("peer.example", "127.0.0.1", peer.port, PLAIN, source_address="127.0.0.2")
        connection = await smtp_connection.connect(destination, hello_name="me.example", timeouts=LONG_TIMEOUTS)
        assert connection._transport is not None
        assert connection._transport.get_extra_info("sockname")[0] == "127.0.0.2"
        await connection.close()


@pytest.mark.parametrize(
    "script, stage, code",
    [
        ({"BANNER": "554 5.7.1 go away"}, Stage.BANNER, 554),
        ({"BANNER": ("421 4.3.2 not now", CLOSE)}, Stage.BANNER, 421),
        ({"EHLO": "550 5.7.1 no", "HELO": "550 5.7.1 no"}, Stage.HELLO, 550),
        ({"BANNER": CLOSE}, Stage.BANNER, None),
        ({"BANNER": RESET}, Stage.BANNER, None),
        ({"BANNER": ENDLESS}, Stage.BANNER, None),
        ({"BANNER": b"SSH-2.0-nonsense\r\n"}, Stage.BANNER, None),
        ({"EHLO": CLOSE}, Stage.HELLO, None),
    ],
)
async def test_a_session_that_does_not_begin_says_how_far_it_came(
    script: Script, stage: Stage, code: int | None
) -> None:
    async with smtp_peers.serving(script) as peer:
        result = await failure(peer.port)
    assert result.stage is stage
    assert (result.reply.code if result.reply else None) == code
    assert bool(result.detail) is (code is None)


async def test_a_silent_banner_times_out() -> None:
    async with smtp_peers.serving({"BANNER": SILENCE}) as peer:
        result = await failure(peer.port, Timeouts(connect=20, reply=0.2, content=20))
    assert result == RecipientResult(
        Stage.BANNER, cause=values.Cause.REPLY_TIMED_OUT, detail="the destination did not answer in time"
    )


async def test_a_cancelled_delivery_drops_the_connection() -> None:
    async with smtp_peers.serving({"DATA": SILENCE}) as peer, connected(peer) as connection:
        delivery = asyncio.create_task(connection.deliver(ENVELOPE))
        await peer.wait_for("DATA")
        delivery.cancel()
        with pytest.raises(asyncio.CancelledError):
            await delivery
        assert not connection.is_usable
        assert connection._timer is None


async def test_an_aborted_delivery_has_results() -> None:
    async with smtp_peers.serving({"CONTENT": SILENCE}) as peer, connected(peer) as connection:
        delivery = asyncio.create_task(connection.deliver(ENVELOPE))
        await peer.wait_for("CONTENT")
        connection.abort()
        assert [result.in_doubt for result in await delivery] == [True, True]


async def test_a_cancelled_connect_leaves_nothing_behind() -> None:
    async with smtp_peers.serving({"EHLO": SILENCE}) as peer:
        connecting = asyncio.create_task(connect(peer.port))
        await peer.wait_for("EHLO")
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting


async def test_closing_does_not_wait_for_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smtp_connection, "QUIT_SECONDS", 0.05)
    async with smtp_peers.serving({"QUIT": SILENCE}) as peer:
        connection = await connect(peer.port)
        await connection.close()
        await connection.close()  # again changes nothing
        assert not connection.is_usable
        assert peer.verbs() == ["EHLO", "QUIT"]


async def test_only_one_delivery_at_a_time_is_a_rule_for_callers() -> None:
    async with smtp_peers.serving({"MAIL": SILENCE}) as peer, connected(peer) as connection:
        delivery = asyncio.create_task(connection.deliver(ENVELOPE))
        await peer.wait_for("MAIL")
        with pytest.raises(RuntimeError):
            await connection.deliver(ENVELOPE)
        connection.abort()
        await delivery
