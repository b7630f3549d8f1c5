"""Servers and verifiers that are not ours take what the engine sends: aiosmtpd, Postfix, dkimpy, opendkim."""

import email
import email.policy
import ssl
from typing import Any

import pytest
import trustme

from postroad import context
from postroad.mail.accept import submit_mime
from postroad.mail.signing import domain_keys
from postroad.model.mail import statuses
from postroad.services.messages import lookup as messages
from postroad.storage.mail import domains
from tests import accepted_mail, aiosmtpd_server, contexts, dkim_verifiers, smtp_peers
from tests.delivery import engine_harness, postfix_server

HOST = engine_harness.HOST
SIGNED: dict[str, Any] = {"sign": True}
TEXT = "Grüße!\n.\n..two dots\n.a dot and a word\n" + "word " * 400 + "\nlast line"


def present() -> contexts.Clock:
    """A clock that shows the time of this machine: verifiers refuse signatures from the future."""
    clock = contexts.Clock()
    clock.now = context.system_clock()
    return clock


def certified() -> ssl.SSLContext:
    """A server's side of TLS."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(HOST).configure_cert(made)
    return made


async def test_aiosmtpd_takes_our_mail_without_pipelining(url: str) -> None:
    mailbox = aiosmtpd_server.Mailbox()
    async with (
        aiosmtpd_server.serving(mailbox, name=HOST, tls=certified()) as port,
        engine_harness.running_engine(url, port=port) as harness,
    ):
        await harness.prove()
        sent = [
            await harness.send("ada@example.net", "bob@example.net", "jörg@example.net", text=TEXT) for _ in range(2)
        ]
        for message_id in sent:
            seen = await harness.settle(message_id)
            found = [(one.status, one.last_smtp_code, one.attempt_count) for one in seen.recipients]
            assert found == [("delivered", 250, 1), ("bounced", 550, 1), ("delivered", 250, 1)]
            assert {attempt.tls for attempt in seen.attempts} == {"TLSv1.3"}
            assert seen.message.status == "partial"
        raws = [await messages.raw(harness.ctx, harness.account_id, message_id) for message_id in sent]
        assert await harness.credits() == (5, 0)
    taken = mailbox.taken[1:]
    # A recipient that needs SMTPUTF8 has a transaction of its own.
    assert sorted(content for _, content, _ in taken) == sorted(raws * 2)
    assert sorted(recipients for recipients, _, _ in taken) == [["ada@example.net"]] * 2 + [["jörg@example.net"]] * 2
    assert {seen_tls for _, _, seen_tls in mailbox.taken} == {True}


@pytest.mark.skipif(postfix_server.missing() is not None, reason=str(postfix_server.missing()))
@pytest.mark.parametrize("discarded", ["", "pipelining,starttls"], ids=["all", "plain"])
async def test_postfix_takes_our_mail(discarded: str, url: str) -> None:
    with postfix_server.running(HOST, discarded=discarded) as postfix:
        async with engine_harness.running_engine(url, port=postfix.port) as harness:
            recipients = [f"user{number}@example.net" for number in range(20)]
            first = await harness.send()
            await harness.settle(first)
            sent = [
                first,
                await harness.send(*recipients, text=TEXT),
                await harness.send("ada@example.net", text=TEXT * 100),
            ]
            for message_id in sent:
                seen = await harness.settle(message_id)
                assert {(one.status, one.attempt_count, one.last_smtp_code) for one in seen.recipients} == {
                    ("delivered", 1, 250)
                }
                assert {attempt.tls for attempt in seen.attempts} == {"" if "starttls" in discarded else "TLSv1.3"}
            raws = [await messages.raw(harness.ctx, harness.account_id, message_id) for message_id in sent]
            assert await harness.credits() == (22, 0)
        # Each recipient has a transaction of its own.
        assert sorted(postfix.contents()) == sorted([raws[0], *[raws[1]] * 20, raws[2]])


async def _signed(harness: engine_harness.EngineHarness, *to: str, **fields: object) -> dict[str, str]:
    """Send a message and return the records that its signature is checked against."""
    async with harness.ctx.store.reading() as tx:
        domain = await domains.by_name(tx, harness.account_id, accepted_mail.DOMAIN)
    assert domain is not None
    record = await domain_keys.record(harness.ctx, domain)
    seen = await harness.settle(await harness.send(*to, **fields))
    assert {one.status for one in seen.recipients} == {"delivered"}
    return {record.name: record.value}


async def test_what_arrives_parses_back_and_its_signature_is_good(url: str) -> None:
    async with engine_harness.delivering_to(url, clock=present(), **SIGNED) as (peer, harness):
        records = await _signed(harness, subject="Grüße", text=TEXT, html="<p>Grüße!</p>")
    (taken,) = peer.transactions
    assert taken.content.startswith(b"DKIM-Signature:")
    assert dkim_verifiers.dkimpy_accepts(taken.content, records)
    assert not dkim_verifiers.dkimpy_accepts(taken.content.replace(b"last line", b"lost line"), records)
    parsed = email.message_from_bytes(taken.content, policy=email.policy.default)
    assert (parsed["Subject"], parsed["From"], parsed["To"]) == ("Grüße", "shop@example.com", "ada@example.net")
    assert parsed.defects == []
    body = parsed.get_body(("plain",))
    assert body is not None
    assert body.get_content().splitlines() == TEXT.splitlines()


EIGHT_BIT = {
    "bare": (b"", "Grüße!\r\n.\r\nüber alles \r\n\r\n".encode()),
    "latin": (b"", "Grüße!\r\n.\r\nüber alles \r\n\r\n".encode("latin-1")),
    "cyrillic": (
        b"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n",
        "Привет, мир!\r\n".encode() * 50,
    ),
    "multipart": (
        b"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\nContent-Transfer-Encoding: 8bit\r\n",
        (
            b"--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>Gr\xc3\xbc\xc3\x9fe</p> \r\n\r\n--b\r\n"
            b'Content-Type: application/octet-stream; name="\xc3\x9c.bin"\r\n\r\n\xff\xfe\r\n--b\r\n'
            b"Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
            b"Subject: x\r\n\r\nf\xc3\xbcr\r\n--b--\r\n"
        ),
    ),
}


@pytest.mark.parametrize("extensions", [smtp_peers.ALL_EXTENSIONS, ("PIPELINING",), ()], ids=["all", "7bit", "none"])
async def test_8_bit_mail_arrives_in_7_bits_with_a_good_signature(extensions: tuple[str, ...], url: str) -> None:
    """Over SMTP, to hosts with and without 8BITMIME: the same octets."""
    async with engine_harness.delivering_to(url, extensions=extensions, clock=present(), **SIGNED) as (peer, harness):
        records = await _signed(harness)
        who = accepted_mail.caller_of(harness.account_id)
        for fields, body in EIGHT_BIT.values():
            content = b"From: shop@example.com\r\nSubject: x\r\nMessage-ID: <1@web1>\r\n" + fields + b"\r\n" + body
            raw = statuses.RawMessage("shop@example.com", ("ada@example.net",), content, "by mx.example.com; now")
            accepted = await submit_mime.submit_mime(harness.ctx, who, raw, request_id="req_1")
            seen = await harness.settle(accepted.message_id)
            assert seen.standing == ("delivered", 1, 250)
    _, *taken = peer.transactions
    assert len(taken) == len(EIGHT_BIT)
    for one in taken:
        assert one.content.isascii()
        assert "BODY=" not in one.mail
        assert dkim_verifiers.dkimpy_accepts(one.content, records)
        parsed = email.message_from_bytes(one.content, policy=email.policy.default)
        assert (parsed["X-Original-Message-ID"], parsed["MIME-Version"]) == ("<1@web1>", "1.0")


async def test_the_signature_is_good_beside_an_internationalised_address_without_smtputf8(url: str) -> None:
    async with engine_harness.delivering_to(url, extensions=("PIPELINING",), clock=present(), **SIGNED) as (
        peer,
        harness,
    ):
        await harness.prove()
        records = await _signed(harness, "bob@example.net")
        seen = await harness.settle(await harness.send("ada@example.net", "grüße@example.net", text=TEXT))
        assert [one.status for one in seen.recipients] == ["delivered", "bounced"]
    content = peer.transactions[-1].content
    assert content.isascii()
    assert dkim_verifiers.dkimpy_accepts(content, records)
    assert not dkim_verifiers.dkimpy_accepts(content.replace(b":;", b": eve@example.net;"), records)
