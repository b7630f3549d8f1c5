"""Security cases F10 and F11 (with J2): nobody sends as somebody else, and no address is a command in disguise.

Through the whole service; nothing that is refused is in the store or at the next host. `N` are neighbours of the
written cases.
"""

from typing import Any

import pytest

from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.services.people import credentials
from tests import accepted_mail, smtp_peers
from tests.delivery import engine_harness
from tests.security.whole_service import ADA, BEGIN, MESSAGE, WholeService, hand_over, plain

OWN = b"From: Shop <shop@example.com>\r\n"
REST = MESSAGE.removeprefix(OWN)
TO_ADA = b"RCPT TO:<ada@example.net>\r\n"

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


async def test_f11_readers_see_the_sender_that_was_checked(service: WholeService) -> None:
    """F11: comments, empty elements and forwarders' fields that could show another sender do not arrive."""
    other = b"boss@elsewhere.example"
    for fields in (
        b"From: (%b) shop@example.com\r\n" % other,
        b"From: shop@example.com (%b),\r\n" % other,
        OWN + b"Sender: (%b) shop@example.com\r\n" % other,
        OWN + b"Resent-From: %b\r\nResent-Sender: %b\r\n" % (other, other),
    ):
        assert (await service.hand_in(fields + REST)).startswith("250 "), fields
    arrived = await service.settled()
    assert len(arrived) == 4
    assert not any(other in one.taken.content for one in arrived)


async def test_f11_nobody_uses_an_envelope_sender_of_somebody_else(service: WholeService) -> None:
    """F11: an envelope domain that the account does not own: 550 5.7.1, nothing queued."""
    other = await accounts.create(service.ctx, "Theirs")
    await accepted_mail.allow_sending(service.ctx, other.id, domain="theirs.example")
    for domain in (b"elsewhere.example", b"theirs.example", b"mail.example.com", b"notexample.com"):
        reply = await service.hand_in(MESSAGE, begin=b"MAIL FROM:<boss@%b>\r\n" % domain + TO_ADA)
        assert reply.startswith("550 5.7.1 forbidden: MAIL FROM: "), domain
    assert await service.settled() == []


async def test_f11_whatever_the_envelope_said_bounces_come_to_us(service: WholeService) -> None:
    """F11: own domains and the null sender pass; the next host sees a return path of ours."""
    await domains.add(service.ctx, service.account.id, "second.example", verified=True)
    for sender in (b"", b"other@example.com", b"other@second.example"):
        assert (await service.hand_in(MESSAGE, begin=b"MAIL FROM:<%b>\r\n" % sender + TO_ADA)).startswith("250 ")
    for arrived in await service.settled():
        assert arrived.taken.mail.startswith("MAIL FROM:<bounces+")
        assert b"other@" not in arrived.taken.content


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


# F10: addresses that are commands.

EVIL_ADDRESSES = [
    '"x\r\nRCPT TO:<v@example.net>"@example.net',
    '"x\rRCPT TO:<v@example.net>"@example.net',
    '"x\nRCPT TO:<v@example.net>"@example.net',
    '"x\0"@example.net',
    "x\r\nDATA@example.net",
    "x@example.net\r\nRCPT TO:<v@example.net>",
    "x@example.net>\r\nRCPT TO:<v@example.net",
    "x@example.net> SIZE=1",
    "x> NOTIFY=NEVER <y@example.net",
    "x@exa\u2028mple.net",
    "x@example\u3002net\r\n",
    "ada@example.net, eve@example.net",
    "x@example.net ORCPT=rfc822;y",
    '"x> RCPT TO:<v"@example.net',
]


@pytest.mark.parametrize("member", ["to", "cc", "bcc", "from", "reply_to"])
async def test_f10_no_address_by_http_is_a_command(service: WholeService, member: str) -> None:
    """F10: a recipient (or any address) with CR, LF, NUL or the end of a path in it: 400 at the API."""
    for evil in EVIL_ADDRESSES:
        members: dict[str, Any] = {member: evil}
        await service.refuse(**members)
        if member in {"to", "cc", "bcc"}:
            members[member] = [ADA, evil]
            await service.refuse(**members)
    assert await service.settled() == []
    assert service.sink.connections == 0


async def test_f10_no_address_by_smtp_is_a_command(service: WholeService) -> None:
    """F10, at the SMTP listener: such a path is refused, and its lines are not executed."""
    async with service.connect() as connection:
        await connection.ask(b"MAIL FROM:<shop@example.com>\r\n")
        for evil in EVIL_ADDRESSES:
            if "\n" not in evil:
                (reply,) = await connection.ask(f"RCPT TO:<{evil}>\r\n".encode())
                assert reply[:1] == b"5", evil
            await connection.ask(b"RSET\r\nMAIL FROM:<shop@example.com>\r\n", replies=2)
        assert (await connection.ask(b"DATA\r\n"))[0][:1] == b"5"
    assert await service.settled() == []


@pytest.mark.parametrize(
    "recipient",
    [
        '"x\r\nRCPT TO:<v@x>"@example.net',
        "x\r\nRCPT TO:<v@x>\r\n@example.net",
        "x\nRSET@example.net",
        "x\rRSET@example.net",
        "x\0@example.net",
        "x> SIZE=1 <y@example.net",
    ],
)
async def test_f10_the_client_refuses_by_itself_what_no_listener_would_accept(
    database_url: str, recipient: str
) -> None:
    """F10, outgoing side: such a recipient in the store, whoever put it there, never becomes octets on the wire."""
    async with smtp_peers.serving() as peer, engine_harness.running_engine(database_url, port=peer.port) as post:
        seen = await post.settle(await post.send_bytes(MESSAGE, recipient))
        assert seen.recipient.status == "bounced"
        assert (await post.settle(await post.send())).standing == ("delivered", 1, 250)
    assert [command for command in peer.commands if command.startswith("RCPT")] == [f"RCPT TO:<{ADA}>"]
    assert {*peer.verbs()} <= {"EHLO", "MAIL", "RCPT", "DATA", "CONTENT", "RSET", "QUIT"}
    assert not [command for command in peer.commands if "RSET" in command[1:] or "v@x" in command or "\0" in command]
    assert len(peer.transactions) == 1
