"""The submission listener, over real SMTP: 250 means that the message is on disk, and the log knows every request."""

import asyncio
import email.message
import re
import smtplib
import types

import aiosmtplib
import pytest

from postroad.concurrency import fairness
from postroad.mail.accept import submit_mime
from postroad.services.people import credentials
from postroad.submission import session
from tests.contexts import Clock
from tests.submission.submission_server import ADA, CLIENT, MESSAGE, NAME, SENDER, SubmissionServer, send


async def test_a_message_is_on_disk_before_it_is_acknowledged(server: SubmissionServer) -> None:
    async with server.client() as client:
        text = await send(client)
    queued = re.fullmatch(r"2\.0\.0 OK: queued as (em_\w+)", text)
    assert queued is not None
    (stored,) = await server.stored()
    assert (stored.message.id, stored.message.source, stored.recipients) == (queued[1], "smtp", [ADA])
    assert b"\r\nIt is on its way.\r\n" in stored.body


async def test_the_log_has_a_line_for_it_with_the_request_id_of_the_message(server: SubmissionServer) -> None:
    async with server.client() as client:
        await send(client)
    (stored,) = await server.stored()
    (line,) = server.logged("DATA")
    assert line["level"] == "info"
    assert line["request_id"] == stored.message.request_id
    assert line["message_id"] == stored.message.id
    assert (line["reply"], line["code"], line["replayed"]) == ("250 2.0.0", None, False)
    assert (line["account_id"], line["credential_id"]) == (server.account.id, server.credential.id)
    assert line["client_address"] == "127.0.0.1"
    assert line["duration_ms"] > 0


async def test_no_line_holds_a_password_an_address_or_a_content(server: SubmissionServer) -> None:
    async with server.client() as client:
        await send(client)
        with pytest.raises(aiosmtplib.SMTPDataError):
            await send(client, MESSAGE.replace(b"shop@example.com", b"shop@elsewhere.example"))
    text = str(server.lines.kept)
    for secret in (server.password, ADA, SENDER, "on its way", "Your order"):
        assert secret not in text


async def test_the_trace_names_this_host_and_the_request_but_not_the_client(server: SubmissionServer) -> None:
    async with server.client() as client:
        await send(client)
    (stored,) = await server.stored()
    received = re.search(rb"^Received:((?:[^\r]|\r\n[ \t])+)", stored.body, re.MULTILINE)
    assert received is not None
    trace = re.sub(rb"\s+", b" ", received[1]).decode().strip()
    day = r"\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} \+0000"
    assert re.fullmatch(rf"by {re.escape(NAME)} with ESMTPA id {stored.message.request_id}; {day}", trace)
    assert b"127.0.0.1" not in stored.body
    assert CLIENT.encode() not in stored.body


async def test_the_envelope_decides_who_gets_it_and_nobody_sees_bcc(server: SubmissionServer) -> None:
    async with server.client() as client:
        await send(client, b"Bcc: eve@example.net\r\n" + MESSAGE, ADA, "bob@example.net", "Bob@example.net")
    (stored,) = await server.stored()
    assert stored.recipients == [ADA, "bob@example.net"]
    assert b"eve@example.net" not in stored.body


async def test_a_message_with_unix_line_ends_is_normalised(server: SubmissionServer) -> None:
    """As `smtplib.sendmail` sends the bytes of a message: it doubles the dots of lines, and adds CRLF at the end."""
    message = email.message.EmailMessage()
    message["From"], message["To"], message["Subject"] = SENDER, ADA, "Lines"
    message.set_content("one\n.\n..two\n.MAIL FROM:<eve@example.com>\n\n.\n")

    def hand_in() -> None:
        with smtplib.SMTP(*server.addresses["listen"], local_hostname=CLIENT) as client:
            client.login(*server.login)
            client.sendmail(SENDER, [ADA], message.as_bytes())

    await asyncio.to_thread(hand_in)
    (stored,) = await server.stored()
    assert stored.body.endswith(b"\r\n\r\none\r\n.\r\n..two\r\n.MAIL FROM:<eve@example.com>\r\n\r\n.\r\n\r\n")
    assert b"\n" not in stored.body.replace(b"\r\n", b"")


async def test_a_second_message_with_the_same_key_is_the_first(server: SubmissionServer) -> None:
    keyed = b"Idempotency-Key: order-7\r\n" + MESSAGE
    async with server.client() as client:
        first = await send(client, keyed)
        assert await send(client, keyed) == first
        with pytest.raises(aiosmtplib.SMTPDataError) as refused:
            await send(client, keyed.replace(b"on its way", b"lost"))
    assert refused.value.code == 550
    assert "idempotency_conflict: " in refused.value.message
    (stored,) = await server.stored()
    assert b"Idempotency-Key" not in stored.body
    assert [line["replayed"] for line in server.logged("DATA")] == [False, True, None]


@pytest.mark.parametrize("address", ['"ada b"@example.net', "ada@[127.0.0.1]", "ada@localhost", "ada@example..net"])
async def test_a_recipient_that_mail_cannot_be_sent_to_is_refused_at_once(
    server: SubmissionServer, address: str
) -> None:
    async with server.client() as client:
        await client.mail(SENDER)
        with pytest.raises(aiosmtplib.SMTPRecipientRefused) as refused:
            await client.rcpt(address)
        assert refused.value.code == 553
        await client.rcpt(ADA)
        assert (await client.data(MESSAGE)).code == 250
    (stored,) = await server.stored()
    assert stored.recipients == [ADA]


@pytest.mark.parametrize(
    "command, expected",
    [
        (b"RCPT TO:<ada b@example.net>", "553 5.1.3"),
        (b"RCPT TO:ada@example.net", "501 5.5.4"),
        (b"RCPT TO:<to-50@example.net>", "452 4.5.3"),
    ],
)
async def test_what_the_protocol_refuses_of_a_recipient_is_said_in_the_same_way(
    server: SubmissionServer, command: bytes, expected: str
) -> None:
    async with server.client() as client:
        await client.mail(SENDER)
        for number in range(50):
            await client.rcpt(f"to-{number}@example.net")
        # Somebody who is named again takes no place.
        await client.rcpt("TO-0@example.net")
        reply = await client.execute_command(command)
        assert (await client.data(MESSAGE)).code == 250
    (line,) = server.logged("RCPT")
    code, _, enhanced = expected.partition(" ")
    assert str(reply.code) == code
    assert reply.message.startswith(f"{enhanced} invalid_request: ")
    assert reply.message.endswith(f"({line['request_id']})")
    # No message was refused.
    assert not server.ctx.metrics.refused.values


async def test_a_revoked_credential_stops_an_open_session_and_nothing_is_queued(
    server: SubmissionServer, clock: Clock
) -> None:
    other, password = await credentials.create(server.ctx, server.account.id, "other")
    async with server.client() as client:
        await send(client)
        await client.mail(SENDER)
        await client.rcpt(ADA)
        await credentials.revoke(server.ctx, server.account.id, server.credential.id)
        clock.pass_seconds(1)
        with pytest.raises(aiosmtplib.SMTPDataError) as refused:
            await client.data(MESSAGE)
        assert refused.value.code == 535
        assert refused.value.message.startswith("5.7.8 unauthorized: ")
        with pytest.raises(aiosmtplib.SMTPSenderRefused) as next_one:
            await client.mail(SENDER)
        assert next_one.value.code == 530
        # Another credential may log in on the same connection.
        await client.login(other.username, password)
        await send(client)
    assert len(await server.stored()) == 2


async def test_a_bug_is_logged_with_the_request_id_and_asks_for_another_try(
    server: SubmissionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_arguments: object, **_named: object) -> None:
        raise LookupError("a bug")

    async with server.client() as client:
        with monkeypatch.context() as patched:
            patched.setattr(submit_mime, "submit_mime", fail)
            with pytest.raises(aiosmtplib.SMTPDataError) as refused:
                await send(client)
        assert refused.value.code == 451
        (line,) = [line for line in server.lines.kept if line["event"] == "request_failed"]
        assert line["exc_info"]
        assert refused.value.message.startswith("4.3.0 internal_error: ")
        assert refused.value.message.endswith(f"({line['request_id']})")
        assert "a bug" not in refused.value.message
        await send(client)


async def test_chunks_and_pipelined_commands_are_taken(server: SubmissionServer) -> None:
    half = len(MESSAGE) // 2
    async with server.raw() as connection:
        replies = await connection.say(
            b"MAIL FROM:<shop@example.com> BODY=8BITMIME\r\nRCPT TO:<ada@example.net> NOTIFY=NEVER\r\n"
            b"BDAT %d\r\n%bBDAT %d LAST\r\n%bQUIT\r\n" % (half, MESSAGE[:half], len(MESSAGE) - half, MESSAGE[half:]),
            replies=5,
        )
    assert [line[:3] for line in replies.splitlines()] == [b"250", b"250", b"250", b"250", b"221"]
    (stored,) = await server.stored()
    assert stored.recipients == [ADA]


async def test_what_happens_is_counted(server: SubmissionServer) -> None:
    counted = server.ctx.metrics
    async with server.client() as client:
        await send(client)
        assert counted.submission_connections.values[()] == 1
        with pytest.raises(aiosmtplib.SMTPDataError):
            await send(client, MESSAGE.replace(b"shop@example.com", b"shop@elsewhere.example"))
    async with server.client(log_in=False) as client:
        with pytest.raises(aiosmtplib.SMTPAuthenticationError):
            await client.auth_plain(server.credential.username, "wrong")
    assert counted.submission_sessions.values[()] == 2
    assert counted.submission_logins.values == {("accepted",): 1, ("unauthorized",): 1}
    assert counted.accepted.values == {("smtp",): 1}
    assert counted.refused.values == {("smtp", "forbidden"): 1}
    text = counted.render()
    assert b"postroad_submission_message_seconds_count 2.0" in text


async def test_a_flood_of_refusals_waits_for_its_replies_and_others_do_not(
    server: SubmissionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(fairness.DELAY_RATES, fairness.Pace.REFUSALS, 1)
    monkeypatch.setattr(fairness, "DELAY_BURST", 1)
    delayed, is_over = asyncio.Event(), asyncio.Event()

    async def wait(_seconds: float) -> None:
        delayed.set()
        await is_over.wait()

    monkeypatch.setattr(session, "asyncio", types.SimpleNamespace(sleep=wait))
    async with server.client(log_in=False) as stranger, server.client() as customer:

        async def guess() -> None:
            # Each is an attempt with PLAIN and one with LOGIN.
            for _ in range(2):
                with pytest.raises(aiosmtplib.SMTPAuthenticationError):
                    await stranger.login("nobody", "wrong")

        guessing = asyncio.create_task(guess())
        await delayed.wait()
        assert "queued as" in await send(customer)
        assert not guessing.done()
        is_over.set()
        await guessing
