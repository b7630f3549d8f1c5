"""Security cases F (and J2) that need the whole service: one message in is one message out, of who may send it.

What the client is answered, what is in the store, and what arrives at the next host, octet by octet. The other cases F
are shown where they are decided; `cases.py` says where. `N` are neighbours of the written cases.
"""

import asyncio
import base64
import itertools
import tracemalloc

import pytest

from postroad.model.mail import limits
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.services.people import credentials
from tests import accepted_mail
from tests.network import recording_listener
from tests.reliability import profile
from tests.security.whole_service import (
    ADA,
    BEGIN,
    HEADER,
    MESSAGE,
    SENDER,
    WAYS,
    WholeService,
    assert_lines,
    hand_over,
    plain,
)

EVE = b"MAIL FROM:<eve@example.com>\r\nRCPT TO:<victim@example.net>\r\nDATA\r\n"
SMUGGLED = EVE + b"From: eve@example.com\r\nSubject: smuggled\r\n\r\nBelieve me.\r\n"

# `make test`: each way and each verb, and both verbs in the clear. `make test-all`: every pair.
WAYS_AND_VERBS = (
    tuple(itertools.product(WAYS, ("DATA", "BDAT")))
    if profile.IS_LONG
    else (("clear", "DATA"), ("clear", "BDAT"), ("starttls", "BDAT"), ("tls", "DATA"))
)
# Each would be the end of the message for a host that is not strict.
FALSE_ENDS = {
    "F1": [b"\r.\r", b"\r\n.\r"],
    "N": [
        b"\r.\r\n",
        b"\r.\n",
        b"\n.\r",
        b"\r\n.\r\r\n",
        b"\r\n.\x00\r\n",
        b"\r\n\x00.\r\n",
        b"\r\n.\r\x00\n",
    ],
}
# The same with bare LFs only, which are normalised.
FALSE_LF_ENDS = [b"\n.\n", b"\r\n.\n", b"\n.\r\n", b"\n\n.\n\n"]


async def hand_in_raw(service: WholeService, content: bytes, *, way: str, verb: str) -> bytes:
    """Send octets as they are, an end behind them, and hear the one reply that they get."""
    async with service.connect(way) as connection:
        await connection.ask(BEGIN, replies=2)
        if verb == "DATA":
            await connection.ask(b"DATA\r\n")
            (reply,) = await connection.ask(content + b"\r\n.\r\n")
        else:
            (reply,) = await connection.ask(b"BDAT %d LAST\r\n%b" % (len(content), content))
        # If anything had been taken for a command, its answer would stand before this one.
        assert await connection.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]
    return reply


@pytest.mark.parametrize("way,verb", WAYS_AND_VERBS)
@pytest.mark.parametrize("case", FALSE_ENDS)
async def test_f1_a_false_end_is_refused_and_smuggles_nothing(
    service: WholeService, case: str, way: str, verb: str
) -> None:
    """F1: DATA with a bare CR before or behind a dot, then MAIL FROM: 5xx, and never two messages. BDAT alike."""
    for end in FALSE_ENDS[case]:
        reply = await hand_in_raw(service, MESSAGE.removesuffix(b"\r\n") + end + SMUGGLED, way=way, verb=verb)
        assert reply.startswith(b"550 5.6.0 invalid_request: "), (end, reply)
        assert await service.stored() == [], end
    await service.hand_in(MESSAGE, way=way)
    (arrived,) = await service.settled()
    assert (arrived.recipients, arrived.taken.recipients) == ([ADA], ["RCPT TO:<ada@example.net>"])


@pytest.mark.parametrize("way,verb", WAYS_AND_VERBS)
async def test_f1_a_false_end_of_bare_lfs_is_content_of_one_message(service: WholeService, way: str, verb: str) -> None:
    """F1: DATA with bare LFs around a dot, then MAIL FROM: one message that holds it all, in lines that end in CRLF."""
    for number, end in enumerate(FALSE_LF_ENDS, start=1):
        reply = await hand_in_raw(service, MESSAGE.removesuffix(b"\r\n") + end + SMUGGLED, way=way, verb=verb)
        assert reply.startswith(b"250 2.0.0 OK: queued as em_"), (end, reply)
        assert len(await service.stored()) == number, end
    for arrived in await service.settled():
        assert (arrived.recipients, arrived.taken.recipients) == ([ADA], ["RCPT TO:<ada@example.net>"])
        assert_lines(arrived.taken.wire)
        end, _, smuggled = arrived.taken.content.partition(b"It is on its way.")[2].partition(EVE)
        assert smuggled
        # By DATA the lone dot is one that was doubled; in a chunk it is text.
        assert set(end.split(b"\r\n")) == ({b""} if verb == "DATA" else {b"", b"."})


# F2: what leaves the service.

UGLY = ".\n..two\n.\nRCPT TO:<eve@example.net>\r.\rMAIL FROM:<eve@example.net>\r\n.\r\n\r.\n\n.\n.end\n."


@pytest.mark.parametrize("member", ["text", "html"])
async def test_f2_only_crlf_and_doubled_dots_leave_for_a_body_by_http(service: WholeService, member: str) -> None:
    """F2: a body with bare LF, bare CR and lines of dots, over HTTP: at the sink only CRLF, each first dot doubled."""
    members = {"text": None, member: UGLY}
    assert (await service.post(**members)).status_code == 202
    (arrived,) = await service.settled()
    assert_lines(arrived.taken.wire)
    assert service.sink.verbs().count("MAIL") == service.sink.verbs().count("RCPT") == 1


@pytest.mark.parametrize("verb", ["DATA", "BDAT"])
async def test_f2_lines_of_dots_leave_as_they_came_by_smtp(service: WholeService, verb: str) -> None:
    """F2: over SMTP a bare CR is refused; dots arrive as they were, and are doubled on the wire."""
    body = b".\r\n..two\r\n.\r\nRCPT TO:<eve@example.net>\r\n...\r\n\r\n.\r\n.end\r\n"
    assert (await service.hand_in(HEADER + b"\r\n" + body, verb=verb)).startswith("250 ")
    (arrived,) = await service.settled()
    assert arrived.taken.content.endswith(b"\r\n\r\n" + body)
    assert arrived.taken.wire.endswith(b"\r\n\r\n" + (b"\r\n" + body).replace(b"\r\n.", b"\r\n..")[2:])
    bare = HEADER + b"\r\n" + UGLY.encode() + b"\r\n"
    assert (await service.hand_in(bare, verb=verb)).startswith("550 5.6.0 ")
    assert len(await service.settled()) == 1


MEBIBYTE = 1024 * 1024
# Twice what a message may have, for the buffer while it grows, and what both ends of the connection hold.
MAX_MEMORY = 2 * limits.MIME_BYTES + 16 * MEBIBYTE


async def pour(connection: recording_listener.Connection, octets: int) -> None:
    """One line without an end."""
    piece = b"x" * (256 * 1024)
    for _ in range(octets // len(piece)):
        await connection.send(piece)


@pytest.mark.parametrize("where,verb", [("header", "DATA"), ("body", "BDAT")])
async def test_f8_a_line_of_a_hundred_megabytes_is_refused_and_costs_no_memory(
    service: WholeService, where: str, verb: str
) -> None:
    """F8 (and G7's header of 100 MB): a single line of 100 MB: 552, memory flat, and the session goes on."""
    octets = 100 * MEBIBYTE
    head = HEADER + (b"X-Long: " if where == "header" else b"\r\n")
    async with service.connect() as connection:
        await connection.ask(BEGIN, replies=2)
        if verb == "DATA":
            await connection.ask(b"DATA\r\n")
        else:
            await connection.send(b"BDAT %d LAST\r\n" % (len(head) + octets))
        await connection.send(head)
        tracemalloc.start()
        try:
            await pour(connection, octets)
            if verb == "DATA":
                await connection.send(b"\r\n.\r\n")
            reply = await connection.reply()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert reply.startswith(b"552 5.3.4 payload_too_large: ")
        assert peak < MAX_MEMORY
        await connection.ask(BEGIN + b"DATA\r\n", replies=3)
        assert (await hand_over(connection, MESSAGE)).startswith("250 ")
    assert len(await service.settled()) == 1


# F11 and J2: senders.


OWN = b"From: Shop <shop@example.com>\r\n"
REST = MESSAGE.removeprefix(OWN)

# Who a message claims to be from, in all the ways that readers might understand differently.
FORGED = {
    "a domain of nobody": b"From: boss@elsewhere.example\r\n",
    "a domain of another account": b"From: boss@theirs.example\r\n",
    "a domain that is not proven": b"From: boss@unproven.example\r\n",
    "a domain below one's own": b"From: boss@mail.example.com\r\n",
    "a domain that ends like one's own": b"From: boss@notexample.com\r\n",
    "a domain that begins like one's own": b"From: boss@example.com.elsewhere.example\r\n",
    "a look-alike": "From: boss@exаmple.com\r\n".encode(),
    "an empty From": b"From:\r\n",
    "two addresses, one's own first": b"From: shop@example.com, boss@elsewhere.example\r\n",
    "two addresses, one's own last": b"From: boss@elsewhere.example, shop@example.com\r\n",
    "two addresses of one's own": b"From: shop@example.com, boss@example.com\r\n",
    "two From, one's own first": OWN + b"From: boss@elsewhere.example\r\n",
    "two From, one's own last": b"From: boss@elsewhere.example\r\n" + OWN,
    "two From, in other letters": OWN + b"fRoM: boss@elsewhere.example\r\n",
    "two From, both one's own": OWN + OWN,
    "two From, far apart": OWN + (b"X-Far: " + b"apart " * 30 + b"\r\n") * 40 + b"From: boss@elsewhere.example\r\n",
    "one's own as the name": b'From: "shop@example.com" <boss@elsewhere.example>\r\n',
    "one's own in a comment": b"From: boss@elsewhere.example (shop@example.com)\r\n",
    "one's own in an encoded word": b"From: =?utf-8?q?shop=40example=2Ecom?= <boss@elsewhere.example>\r\n",
    "on a second line": b"From:\r\n boss@elsewhere.example\r\n",
    "a sender of elsewhere": OWN + b"Sender: boss@elsewhere.example\r\n",
    "another sender of one's own domain": OWN + b"Sender: boss@example.com\r\n",
    "two senders": OWN + b"Sender: shop@example.com\r\nSender: boss@elsewhere.example\r\n",
    "an empty sender": OWN + b"Sender:\r\n",
}
# What cannot be read as one address is refused for that, before anybody asks whose it is.
UNREADABLE = {
    "no From at all": b"",
    "in a group": b"From: Shop: boss@elsewhere.example;\r\n",
    "one's own in a group": b"From: Shop: shop@example.com;\r\n",
    "two in a group": b"From: Shop: shop@example.com, boss@elsewhere.example;\r\n",
    "no address": b"From: boss\r\n",
    "a domain above one's own": b"From: boss@com\r\n",
    "two angles": b"From: <shop@example.com> <boss@elsewhere.example>\r\n",
    "an angle inside an angle": b"From: <shop@example.com<boss@elsewhere.example>>\r\n",
    "two at signs": b"From: boss@elsewhere.example@example.com\r\n",
    "a route": b"From: <@elsewhere.example:shop@example.com>\r\n",
    "a name outside quotes": b"From: boss@elsewhere.example <shop@example.com>\r\n",
    "an address as an encoded word": b"From: =?utf-8?q?boss=40elsewhere=2Eexample?=\r\n",
    "an address literal": b"From: boss@[127.0.0.1]\r\n",
    "white space before the colon": b"From : boss@elsewhere.example\r\n" + OWN,
    "a line that continues nothing": b" From: boss@elsewhere.example\r\n" + OWN,
    "a NUL": b"From: shop@example.com\0boss@elsewhere.example\r\n",
    "a mailbox file's line": b"From boss@elsewhere.example Mon Jan  1 00:00:00 2024\r\n" + OWN,
}


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_f11_nobody_sends_as_somebody_else(service: WholeService) -> None:
    """F11: From or Sender of a foreign domain, several, repeated, mismatched: 550 5.7.1, nothing queued. J2 as well."""
    other = await accounts.create(service.ctx, "Theirs")
    await accepted_mail.allow_sending(service.ctx, other.id, domain="theirs.example")
    await domains.add(service.ctx, service.account.id, "unproven.example", verified=False)
    for what, fields in FORGED.items():
        assert (await service.hand_in(fields + REST)).startswith("550 5.7.1 forbidden: "), what
    for what, fields in UNREADABLE.items():
        assert (await service.hand_in(fields + REST)).startswith("550 5.6.0 invalid_request: "), what
    assert await service.stored() == []
    assert (await service.hand_in(OWN + b"Sender: Shop <SHOP@example.com>\r\n" + REST)).startswith("250 ")
    assert len(await service.settled()) == 1


async def test_j2_nobody_sends_from_the_domain_of_another_account_over_http_or_smtp(service: WholeService) -> None:
    """J2: 403 over HTTP, 550 over SMTP; the owner may."""
    other = await accounts.create(service.ctx, "Theirs")
    await accepted_mail.allow_sending(service.ctx, other.id, domain="theirs.example")
    credential, password = await credentials.create(service.ctx, other.id, "main")
    await service.refuse(403, "forbidden", **{"from": "boss@theirs.example"})
    content = MESSAGE.replace(b"@example.com>\r\nTo", b"@theirs.example>\r\nTo")
    assert (await service.hand_in(content)).startswith("550 5.7.1 forbidden: ")
    async with service.connect(log_in=False) as connection:
        await connection.ask(plain("", credential.username, password))
        await connection.ask(BEGIN.replace(b"example.com", b"theirs.example") + b"DATA\r\n", replies=3)
        assert (await hand_over(connection, content)).startswith("250 ")
    assert await service.stored() == []


# Log-ins.


WRONG = "not the password"


def encoded(text: str) -> bytes:
    return base64.b64encode(text.encode())


async def code(connection: recording_listener.Connection, line: bytes) -> str:
    """The code of the reply to one line."""
    (reply,) = await connection.ask(line)
    return reply[:3].decode()


async def test_n_what_was_proven_in_the_clear_is_void_under_tls(service: WholeService) -> None:
    """N of F4: STARTTLS makes a session begin anew (RFC 3207 section 4.2): it is logged in no more."""
    async with service.connect() as connection:
        await service.secure(connection)
        assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
    assert await service.settled() == []


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_n_names_that_no_store_may_hold_are_wrong_names(service: WholeService) -> None:
    """N of F5: base64 can carry NUL, line breaks and quotes into a name or a password; each is just a wrong one."""
    username, password = service.login
    names = [
        "a\0b",
        "\0",
        "a\r\nb",
        "' OR 1=1 --",
        "%",
        "\ud7ff\U0010ffff",
        "x" * 6000,
        f"{username}\0",
        f" {username}",
    ]
    for name in names:
        async with service.connect(log_in=False) as connection:
            for pair in ((name, password), (username, name)):
                lines = b"AUTH LOGIN\r\n%b\r\n%b\r\n" % tuple(map(encoded, pair))
                replies = await connection.ask(lines, replies=3)
                assert [reply[:3] for reply in replies] == [b"334", b"334", b"535"], pair
        service.clock.pass_seconds(60)


async def guess(service: WholeService, count: int) -> list[str]:
    """The codes of so many wrong passwords in one session."""
    async with service.connect(log_in=False) as connection:
        codes = [await code(connection, plain("", service.login[0], WRONG)) for _ in range(count)]
        if codes[-1] == "421":
            assert await connection.rest() == b""
    return codes


async def test_n_guesses_made_all_at_once_are_no_faster(service: WholeService) -> None:
    """N of F6: twenty sessions at once: five passwords are tried, whatever the order."""
    found = await asyncio.gather(*(guess(service, 1) for _ in range(20)))
    codes = sorted(codes[0] for codes in found)
    # A pair that is being checked already is waited for: the same wrong one counts once for those who wait together.
    assert set(codes) <= {"451", "535"}
    async with service.connect(log_in=False) as connection:
        for number in range(5):
            await connection.ask(plain("", service.login[0], f"{WRONG} {number}"))
    async with service.connect(log_in=False) as connection:
        assert await code(connection, plain("", *service.login)) == "451"


@pytest.mark.parametrize("way", WAYS)
async def test_f12_nobody_relays_without_auth(service: WholeService, way: str) -> None:
    """F12: a relay attempt without AUTH: 530, always: from inside to outside, outside to inside, null sender, BDAT."""
    senders = (b"shop@example.com", b"eve@elsewhere.example", b"", b"postmaster@mail.example.com")
    async with service.connect(way, log_in=False) as connection:
        for sender in senders:
            (reply,) = await connection.ask(b"MAIL FROM:<%b>\r\n" % sender)
            assert reply.startswith(b"530 5.7.0 unauthorized: Authentication required; use AUTH first (req_"), sender
            assert await code(connection, b"RCPT TO:<ada@example.net>\r\n") == "503"
        assert await code(connection, b"DATA\r\n") == "503"
        replies = await connection.ask(BEGIN + b"BDAT %d LAST\r\n%b" % (len(MESSAGE), MESSAGE), replies=3)
        assert [reply[:3] for reply in replies] == [b"530", b"503", b"503"]
        assert await connection.ask(b"NOOP\r\n") == [b"250 2.0.0 OK"]
    assert await service.settled() == []


ENCRYPTED_ONLY = [{"auth_without_tls": False}]


@pytest.mark.parametrize("service", ENCRYPTED_ONLY, indirect=True)
async def test_f4_auth_before_tls_is_refused_and_tries_no_password(service: WholeService) -> None:
    """F4: AUTH before TLS: 538, also with the right password, which is then not asked for; 530 to MAIL."""
    async with service.connect(log_in=False) as connection:
        for line in (plain("", *service.login), b"AUTH PLAIN\r\n", b"AUTH LOGIN\r\n", b"AUTH LOGIN YQ==\r\n"):
            assert await code(connection, line) == "538"
        assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
        await service.secure(connection)
        assert await code(connection, plain("", *service.login)) == "235"
        await connection.ask(BEGIN + b"DATA\r\n", replies=3)
        assert (await hand_over(connection, MESSAGE)).startswith("250 ")
    assert service.ctx.metrics.submission_logins.values == {("accepted",): 1}
    assert len(await service.settled()) == 1


@pytest.mark.parametrize("way", WAYS)
async def test_f4_mail_before_auth_auth_twice_and_auth_inside_a_transaction_are_refused(
    service: WholeService, way: str
) -> None:
    """F4: MAIL before AUTH: 530. AUTH twice: 503. AUTH inside a transaction: 503, and the transaction lives."""
    login = plain("", *service.login)
    async with service.connect(way, log_in=False) as connection:
        assert await code(connection, b"MAIL FROM:<shop@example.com>\r\n") == "530"
        assert await code(connection, login) == "235"
        assert await code(connection, login) == "503"
        assert await code(connection, b"AUTH LOGIN\r\n") == "503"
        await connection.ask(b"MAIL FROM:<shop@example.com>\r\n")
        assert await code(connection, login) == "503"
        await connection.ask(b"RCPT TO:<ada@example.net>\r\n")
        assert await code(connection, login) == "503"
        await connection.ask(b"DATA\r\n")
        assert (await hand_over(connection, MESSAGE)).startswith("250 ")
    assert len(await service.settled()) == 1


async def test_f6_the_fifth_wrong_password_closes_and_counts_for_http(service: WholeService) -> None:
    """F6: 5 wrong AUTHs: 421 and the end. E12: HTTP is slowed by them, for the right password too, for a while."""
    assert await guess(service, 5) == ["535"] * 4 + ["421"]
    answer = await service.post()
    assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
    async with service.connect(log_in=False) as connection:
        (reply,) = await connection.ask(plain("", *service.login))
        assert reply.startswith(b"451 4.7.1 rate_limited: ")
        service.clock.pass_seconds(60)
        assert (await service.post()).status_code == 202
        assert await code(connection, plain("", *service.login)) == "235"
    assert len(await service.settled()) == 1


# Sizes and loops.


def padded(octets: int) -> bytes:
    """A message of exactly so many octets."""
    lines, rest = divmod(octets - len(MESSAGE) - 2, 1000)
    return MESSAGE + (b"x" * 998 + b"\r\n") * lines + b"x" * rest + b"\r\n"


@pytest.mark.parametrize("verb", ["DATA", "BDAT"])
async def test_f8_a_message_as_large_as_may_be_passes_and_one_octet_more_does_not(
    service: WholeService, verb: str
) -> None:
    """F8: one byte over the announced SIZE of 10 MiB; the trace that is added does not count."""
    assert (await service.hand_in(padded(1000), verb=verb)).startswith("250 ")
    ((first, _, _),) = await service.stored()
    trace = first.size - 1000
    assert (await service.hand_in(padded(10_485_760), verb=verb)).startswith("250 ")
    for too_large in (10_485_761, 10_485_760 + 64 * 1024):
        assert (await service.hand_in(padded(too_large), verb=verb)).startswith("552 5.3.4 payload_too_large: ")
    assert sorted(arrived.message.size for arrived in await service.settled()) == [first.size, 10_485_760 + trace]


async def test_f8_a_lie_about_the_size_helps_nobody(service: WholeService) -> None:
    """F8: SIZE= says little and much comes: 552. SIZE= says too much: 552 at once. SIZE= is no number: 501."""
    mail = b"MAIL FROM:<%b> SIZE=%b\r\n"
    little = mail % (SENDER.encode(), b"10") + b"RCPT TO:<ada@example.net>\r\n"
    too_much = padded(10_485_761)
    assert (await service.hand_in(too_much, begin=little)).startswith("552 5.3.4 payload_too_large: ")
    async with service.connect() as connection:
        for size in (10_485_761, 2**31, 2**32, 2**63, 2**64, 10**19):
            (reply,) = await connection.ask(mail % (SENDER.encode(), b"%d" % size))
            assert reply.startswith(b"552 5.3.4 payload_too_large: "), size
            assert (await connection.ask(b"RCPT TO:<ada@example.net>\r\n"))[0].startswith(b"503 ")
        for text in (b"-1", b"0x10", b"1e3", b"", b"9" * 100, "１".encode()):
            (reply,) = await connection.ask(mail % (SENDER.encode(), text))
            assert reply[:1] == b"5", text
    assert await service.settled() == []


async def test_f15_a_hundred_received_fields_are_a_loop(service: WholeService) -> None:
    """F15: 100 `Received:` fields: 554, nothing queued; with one fewer it passes, and ours is the hundredth."""
    received = b"Received: by somewhere.example; Mon, 1 Jan 2024 00:00:00 +0000\r\n"
    for name in (received, received.lower(), received.replace(b"Received", b"RECEIVED")):
        assert (await service.hand_in(name * 100 + MESSAGE)).startswith("554 5.4.6 invalid_request: Received: ")
    assert await service.stored() == []
    assert (await service.hand_in(received * 99 + MESSAGE)).startswith("250 ")
    (arrived,) = await service.settled()
    assert arrived.names.count("Received") == 100


TO_ADA = b"RCPT TO:<ada@example.net>\r\n"


async def test_f11_nobody_uses_an_envelope_sender_of_somebody_else(service: WholeService) -> None:
    """F11: an envelope domain that the account does not own: 550 5.7.1, nothing queued."""
    other = await accounts.create(service.ctx, "Theirs")
    await accepted_mail.allow_sending(service.ctx, other.id, domain="theirs.example")
    for domain in (b"elsewhere.example", b"theirs.example", b"mail.example.com", b"notexample.com"):
        reply = await service.hand_in(MESSAGE, begin=b"MAIL FROM:<boss@%b>\r\n" % domain + TO_ADA)
        assert reply.startswith("550 5.7.1 forbidden: MAIL FROM: "), domain
    assert await service.settled() == []
