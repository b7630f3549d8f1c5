"""What arrives is what was accepted, byte for byte, whatever is in it and whatever the destination can take."""

import base64
import email
import email.policy
import random

import pytest

from postroad.mail.accept import submit_mime
from postroad.model.mail import send_request, statuses
from postroad.services.messages import lookup as messages
from tests import accepted_mail, smtp_peers
from tests.delivery import engine_harness

HEADER = b"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: x\r\n\r\n"


async def test_ten_mebibytes_arrive_byte_for_byte(url: str) -> None:
    content = random.Random(0).randbytes(7_600_000)
    attachment = send_request.Attachment("numbers.bin", base64.b64encode(content).decode(), "application/octet-stream")
    async with engine_harness.delivering_to(url) as (peer, harness):
        message_id = await harness.send(attachments=(attachment,))
        seen = await harness.settle(message_id)
        assert seen.standing == ("delivered", 1, 250)
        assert seen.message.size > 10_000_000
        raw = await messages.raw(harness.ctx, harness.account_id, message_id)
    (taken,) = peer.transactions
    assert taken.content == raw
    assert f"SIZE={len(raw)}" in taken.mail
    parsed = email.message_from_bytes(taken.content, policy=email.policy.default)
    (part,) = parsed.iter_attachments()
    assert part.get_content() == content


async def test_lines_leave_as_smtp_allows_and_those_of_a_finished_message_as_they_are(url: str) -> None:
    text = "x" * 100_000
    finished = HEADER + text.encode() + b"\r\n"
    odd = HEADER + b".\r\n..two\n.\nRCPT TO:<eve@example.net>\r.\rlast\r\n.\r\n.end"
    async with engine_harness.delivering_to(url) as (peer, harness):
        sent = [await harness.send(text=text), await harness.send_bytes(finished), await harness.send_bytes(odd)]
        for message_id in sent:
            assert (await harness.settle(message_id)).standing == ("delivered", 1, 250)
    built, long, dotted = sorted(
        peer.transactions, key=lambda taken: (taken.content[:5] == HEADER[:5], -len(taken.wire))
    )
    assert max(map(len, built.content.split(b"\r\n"))) <= 998
    body = email.message_from_bytes(built.content, policy=email.policy.default).get_body()
    assert body is not None
    assert body.get_content().rstrip("\r\n") == text
    assert long.content == finished
    # Only CRLF and doubled dots leave.
    wire = b"..\r\n...two\r\n..\r\nRCPT TO:<eve@example.net>\r\n..\r\nlast\r\n..\r\n..end\r\n"
    assert dotted.wire == HEADER + wire
    assert set(peer.verbs()) == {"EHLO", "MAIL", "RCPT", "DATA", "CONTENT", "QUIT"}


async def test_bcc_recipients_are_in_nothing_that_arrives(url: str) -> None:
    async with engine_harness.delivering_to(url) as (peer, harness):
        await harness.prove()
        hidden = ("hidden.one@example.net", "hidden.two@example.net")
        seen = await harness.settle(await harness.send("ada@example.net", cc=("bob@example.net",), bcc=hidden))
        assert [one.status for one in seen.recipients] == ["delivered"] * 4
        assert await harness.credits() == (5, 0)
    _, *transactions = peer.transactions
    assert [len(taken.recipients) for taken in transactions] == [1, 1, 1, 1]
    (content,) = {taken.content for taken in transactions}
    assert b"hidden" not in content
    assert b"bcc:" not in content.lower()
    parsed = email.message_from_bytes(content, policy=email.policy.default)
    assert (parsed["To"], parsed["Cc"]) == ("ada@example.net", "bob@example.net")
    # Each envelope sender names its recipient, in the sender's domain.
    senders = {taken.mail.partition("<")[2].partition(">")[0] for taken in transactions}
    assert len(senders) == 4
    assert all(sender.startswith("bounces+") and sender.endswith("@example.com") for sender in senders)


# What destinations cannot take.

EIGHT_BIT = HEADER + "grüße\r\n".encode()


async def test_plain_mail_needs_no_extension(url: str) -> None:
    async with engine_harness.delivering_to(url, extensions=()) as (peer, harness):
        message_id = await harness.send(text="grüße", subject="grüße")
        assert (await harness.settle(message_id)).standing == ("delivered", 1, 250)
        raw = await messages.raw(harness.ctx, harness.account_id, message_id)
    (taken,) = peer.transactions
    assert taken.content == raw
    assert taken.mail.endswith(">")
    assert peer.verbs() == ["EHLO", "MAIL", "RCPT", "DATA", "CONTENT", "QUIT"]


@pytest.mark.parametrize(
    "extensions, status",
    [(smtp_peers.ALL_EXTENSIONS, "delivered"), (("PIPELINING", "SMTPUTF8"), "bounced")],
    ids=["with", "without"],
)
async def test_8_bit_content_that_must_not_be_changed_needs_8bitmime(
    extensions: tuple[str, ...], status: str, url: str
) -> None:
    head = "From: shop@example.com\r\n"
    signed = f"{head}Content-Type: multipart/signed; boundary=b\r\n\r\n--b\r\n\r\ngrüße\r\n--b--\r\n"
    unknown = f"{head}Content-Transfer-Encoding: x-own\r\n\r\ngrüße\r\n"
    async with engine_harness.delivering_to(url, extensions=extensions) as (peer, harness):
        # Accepted by a version that did not encode it, and what this one must not encode.
        ids = (
            await harness.send_bytes(EIGHT_BIT),
            await send_raw(harness, signed),
            await send_raw(harness, unknown),
        )
        for seen in [await harness.settle(message_id) for message_id in ids]:
            assert (seen.recipient.status, seen.recipient.attempt_count) == (status, 1)
            if status == "bounced":
                expected = "the message has 8-bit content that must not be changed, and the destination does not offer"
                assert seen.recipient.last_smtp_response == f"{expected} 8BITMIME"
                assert (seen.attempt.stage, seen.attempt.reason) == ("mail", "extension_missing")
    taken = [("BODY=8BITMIME" in one.mail, one.content.isascii()) for one in peer.transactions]
    assert taken == ([(True, False)] * 3 if status == "delivered" else [])


@pytest.mark.parametrize(
    "extensions, status",
    [(smtp_peers.ALL_EXTENSIONS, "delivered"), (("PIPELINING", "8BITMIME"), "bounced")],
    ids=["with", "without"],
)
async def test_an_internationalised_address_on_the_envelope_or_in_a_field_needs_smtputf8(
    extensions: tuple[str, ...], status: str, url: str
) -> None:
    async with engine_harness.delivering_to(url, extensions=extensions) as (peer, harness):
        seen = await harness.settle(await harness.send("jörg@example.net"))
        assert (seen.recipient.status, seen.recipient.attempt_count) == (status, 1)
        if status == "bounced":
            expected = "the message has an internationalized address, and the destination does not offer SMTPUTF8"
            assert seen.recipient.last_smtp_response == expected
            assert (seen.attempt.stage, seen.attempt.reason) == ("mail", "extension_missing")
            assert (seen.message.status, await harness.credits()) == ("failed", (0, 0))
            assert await harness.suppressed("jörg@example.net") == {}
        field = "From: shop@example.com\r\nReply-To: jörg@example.net\r\n\r\nHi\r\n"
        assert (await harness.settle(await send_raw(harness, field))).recipient.status == status
    assert [taken.recipients for taken in peer.transactions] == (
        [["RCPT TO:<jörg@example.net>"], ["RCPT TO:<ada@example.net>"]] if status == "delivered" else []
    )
    assert all("SMTPUTF8" in taken.mail for taken in peer.transactions)


async def test_an_internationalised_recipient_bounces_alone_where_smtputf8_is_missing(url: str) -> None:
    to = ("ada@example.net", "Jörg <grüße@example.net>", "Bob <bob@example.net>")
    async with engine_harness.delivering_to(url, extensions=("PIPELINING", "8BITMIME")) as (peer, harness):
        await harness.prove()
        seen = await harness.settle(await harness.send(*to, cc=("ärger@example.net",)))
        assert [(one.email, one.status) for one in seen.recipients] == [
            ("ada@example.net", "delivered"),
            ("grüße@example.net", "bounced"),
            ("bob@example.net", "delivered"),
            ("ärger@example.net", "bounced"),
        ]
        assert (seen.message.status, await harness.credits()) == ("partial", (3, 0))
    _, *transactions = peer.transactions
    reached = sorted(line for taken in transactions for line in taken.recipients)
    assert reached == ["RCPT TO:<ada@example.net>", "RCPT TO:<bob@example.net>"]
    taken = transactions[0]
    assert "SMTPUTF8" not in taken.mail
    assert taken.content.isascii()
    strict = email.policy.default.clone(raise_on_defect=True)
    parsed = email.message_from_bytes(taken.content, policy=strict)
    assert (parsed["To"].defects, parsed["Cc"].defects) == ((), ())
    assert [one.addr_spec for one in parsed["To"].addresses] == ["ada@example.net", "bob@example.net"]
    # Readers see the others as the names of empty groups.
    names = [one.display_name for field in ("To", "Cc") for one in parsed[field].groups if not one.addresses]
    assert names == ["Jörg grüße@example.net", "ärger@example.net"]


async def test_an_internationalised_neighbour_is_shown_as_it_is_where_smtputf8_is_offered(url: str) -> None:
    async with engine_harness.delivering_to(url) as (peer, harness):
        await harness.prove()
        sent = await harness.send("ada@example.net", "grüße@example.net")
        seen = await harness.settle(sent)
        assert [one.status for one in seen.recipients] == ["delivered"] * 2
        raw = await messages.raw(harness.ctx, harness.account_id, sent)
    assert [taken.content for taken in peer.transactions[1:]] == [raw, raw]


async def test_an_internationalised_domain_needs_no_extension(url: str) -> None:
    zones = engine_harness.zones_of({engine_harness.HOST: "127.0.0.1"}, domain="xn--bcher-kva.example")
    async with engine_harness.delivering_to(url, extensions=(), zones=zones) as (peer, harness):
        seen = await harness.settle(await harness.send("Ada@Bücher.example"))
        assert seen.standing == ("delivered", 1, 250)
        # The sender sees the address as it was written.
        assert seen.recipient.email == "Ada@Bücher.example"
    (taken,) = peer.transactions
    assert taken.recipients == ["RCPT TO:<Ada@xn--bcher-kva.example>"]
    assert taken.content.isascii()


async def test_a_message_beyond_the_size_that_is_offered_is_not_sent(url: str) -> None:
    extensions = ("PIPELINING", "SIZE 1000")
    async with engine_harness.delivering_to(url, extensions=extensions) as (peer, harness):
        seen = await harness.settle(await harness.send(text="word " * 1_000))
        assert seen.standing == ("bounced", 1, None)
        assert "at most 1000 octets" in (seen.recipient.last_smtp_response or "")
        assert (seen.attempt.reason, seen.attempt.fault) == ("message_too_large", "content")
        assert (await harness.settle(await harness.send(text="short"))).standing == ("delivered", 1, 250)
    assert len(peer.transactions) == 1


# Finished messages, from the SMTP listener to the wire.


async def send_raw(harness: engine_harness.EngineHarness, content: str, *to: str) -> str:
    """Accept a message as it comes over SMTP, and return its id."""
    raw = statuses.RawMessage(
        "shop@example.com", to or ("ada@example.net",), content.encode(), "by mx.example.com; now"
    )
    who = accepted_mail.caller_of(harness.account_id)
    return (await submit_mime.submit_mime(harness.ctx, who, raw, request_id="req_1")).message_id


@pytest.mark.parametrize("extensions", [smtp_peers.ALL_EXTENSIONS, ()], ids=["all", "none"])
async def test_a_finished_message_arrives_with_doubled_dots_and_nothing_else_changed(
    extensions: tuple[str, ...], url: str
) -> None:
    body = ".\r\n..two\r\nline \r\n.RCPT TO:<eve@example.net>\r\n\r\n.\r\n.end\r\n"
    head = "From: Büro <shop@example.com>\r\nBcc: eve@example.net\r\nX-Kept:  as\t it\r\n  is\r\n"
    async with engine_harness.delivering_to(url, extensions=extensions) as (peer, harness):
        sent = await send_raw(harness, f"{head}\r\n{body}", "ada@example.net", "eve@example.net")
        assert [one.status for one in (await harness.settle(sent)).recipients] == ["delivered"] * 2
        stored = await messages.raw(harness.ctx, harness.account_id, sent)
    assert sorted(line for one in peer.transactions for line in one.recipients) == [
        "RCPT TO:<ada@example.net>",
        "RCPT TO:<eve@example.net>",
    ]
    assert [one.content for one in peer.transactions] == [stored, stored]
    taken = peer.transactions[0]
    assert stored.endswith(b"\r\nX-Kept:  as\t it\r\n  is\r\n\r\n" + body.encode())
    assert taken.wire.endswith(body.replace("\r\n.", "\r\n..").encode().join([b"\r\n\r\n.", b""]))
    assert b"eve@" not in stored.partition(b"\r\n\r\n")[0]
    assert stored.partition(b"\r\n\r\n")[0].isascii()
    assert "BODY=" not in taken.mail
    assert "SMTPUTF8" not in taken.mail


async def test_an_internationalised_address_of_a_finished_message_keeps_nobody_else_from_it(url: str) -> None:
    head = "From: shop@example.com\r\nTO: jörg@example.net,\r\n\tada@example.net\r\nX-Kept:  as\t it\r\n  is\r\n"
    async with engine_harness.delivering_to(url, extensions=()) as (peer, harness):
        sent = await send_raw(harness, f"{head}\r\nsüß\r\n", "ada@example.net", "jörg@example.net")
        assert [one.status for one in (await harness.settle(sent)).recipients] == ["delivered", "bounced"]
    (taken,) = peer.transactions
    assert taken.content.endswith(
        b"TO: =?utf-8?b?asO2cmdAZXhhbXBsZS5uZXQ=?= :;, ada@example.net\r\n"
        b"X-Kept:  as\t it\r\n  is\r\n"
        b"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n"
        b"\r\nc8O8w58NCg==\r\n"
    )
