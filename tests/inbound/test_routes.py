"""Mail to routes over real SMTP: stored before 250 with its event, forwarded or dropped; all else is refused there."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

import aiosmtplib
import msgspec
import pytest
import pytest_asyncio

from postroad import config, context, errors
from postroad.inbound import session
from postroad.mail.authentication import authenticate
from postroad.mail.signing import domain_keys
from postroad.services.accounts import account_registry
from postroad.services.domains import domain_registry as domains
from postroad.services.inbound import attachment_links, forward, receive, routes
from postroad.services.messages import content_checks, lookup, previews, resend
from postroad.storage.mail import attempts, messages, queue_views, received
from postroad.storage.people import accounts
from tests import accepted_mail, contexts, dkim_signatures, dns_server, reports, spamd_server, webhook_endpoints
from tests.api import app_server
from tests.inbound.received_mail import MAIL, TO, body, connected, send, stored
from tests.services import domain_zones

DONE = "250 2.0.0"


@pytest_asyncio.fixture
async def server() -> AsyncIterator[dns_server.DnsServer]:
    async with dns_server.running({"example.net": {"TXT": ['"v=spf1 ip4:127.0.0.1 -all"']}}) as running:
        running.zones["_dmarc.example.net"] = {"TXT": ['"v=DMARC1; p=reject"']}
        yield running


@pytest.fixture
def settings(database_url: str, server: dns_server.DnsServer) -> config.Settings:
    return domain_zones.settings(database_url, server)


@pytest.fixture
async def account_id(ctx: context.Context, account: accounts.Account) -> str:
    await accepted_mail.allow_sending(ctx, account.id)
    return account.id


@pytest.fixture
async def client(ctx: context.Context) -> AsyncIterator[aiosmtplib.SMTP]:
    async with connected(ctx) as client:
        yield client


async def test_a_mail_is_stored_with_its_event_before_it_is_acknowledged(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    route = await routes.add(ctx, account_id, "support+*@in.example.com")
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.received")
    file = (
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nSee the file.\r\n--b\r\n"
        b"Content-Type: text/csv\r\nContent-Disposition: attachment; filename=a.csv\r\n\r\n1,2\r\n--b--\r\n"
    )
    content = MAIL.partition(b"\r\n\r\n")[0] + b"\r\nCc: Bert <bert@example.org>\r\n" + file
    assert await send(client, content, to="Support+Order-7@in.example.com") == DONE
    (mail,) = await stored(ctx, account_id)
    assert (mail.route_id, mail.recipient) == (route.id, "Support+Order-7@in.example.com")
    assert (mail.envelope_sender, mail.sender) == ("anna@example.net", "Anna <anna@example.net>")
    assert (mail.subject, mail.message_id_field, mail.size) == ("My order", "<1@example.net>", len(content))
    assert (mail.email_id, mail.attachment_count, mail.spam) == (None, 1, None)
    whole = await body(ctx, mail)
    assert whole.startswith(b"Return-Path: <anna@example.net>\r\nReceived: from mail.example.net ([127.0.0.1]) by ")
    assert b"\r\nAuthentication-Results: mx.example.com; spf=pass smtp.mailfrom=example.net; dkim=none; " in whole
    assert whole.endswith(content)
    (event,) = await webhook_endpoints.written_events(ctx, webhook)
    data = event["data"]
    assert (event["type"], data["inbound_id"]) == ("email.received", mail.id)
    assert (data["route_id"], data["route"]) == (route.id, "support+*@in.example.com")
    assert (data["envelope_from"], data["to"]) == ("anna@example.net", "Support+Order-7@in.example.com")
    assert data["from"] == "anna@example.net"
    assert data["addresses"] == {
        "from": [{"address": "anna@example.net", "name": "Anna"}],
        "to": [{"address": TO}],
        "cc": [{"address": "bert@example.org", "name": "Bert"}],
    }
    assert (data["subject"], data["date"]) == ("My order", "2027-01-15T08:00:00.000Z")
    assert (data["text"], "html" in data, "truncated" in data) == ("See the file.", False, False)
    assert {"name": "Subject", "value": "My order"} in data["headers"]
    assert data["authentication"]["spf"] == {"result": "pass", "domain": "example.net"}
    assert data["authentication"]["dmarc"] == {"result": "pass", "domain": "example.net", "policy": "reject"}
    assert (data["authentication"]["dkim"], data["authentication"]["arc"]) == ([], {"result": "none"})
    (attached,) = data["attachments"]
    assert (attached["filename"], attached["content_type"], attached["size"]) == ("a.csv", "text/csv", 3)
    assert attached["sha256"] == hashlib.sha256(b"1,2").hexdigest()
    link = attachment_links.read(ctx, attached["url"].rpartition("/")[2])
    assert link is not None
    assert (link.account_id, link.received_id) == (account_id, mail.id)
    assert previews.attachment_of(whole, link.index).body == b"1,2"
    assert data["attachments_expire_at"] == "2027-01-22T08:00:00.000Z"


async def test_the_same_mail_is_stored_once(ctx: context.Context, account_id: str, client: aiosmtplib.SMTP) -> None:
    await routes.add(ctx, account_id, "*@in.example.com")
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.received")
    assert [await send(client) for _ in range(3)] == [DONE] * 3
    assert await send(client, to="sales@in.example.com") == DONE
    # Who knows its Message-ID does not keep it out.
    assert await send(client, MAIL.replace(b"Where", b"There")) == DONE
    found = await stored(ctx, account_id)
    assert sorted(mail.recipient for mail in found) == ["sales@in.example.com", TO, TO]
    assert len(await webhook_endpoints.written_events(ctx, webhook)) == 3


async def test_the_same_mail_at_the_same_moment_is_stored_once(ctx: context.Context, account_id: str) -> None:
    await routes.add(ctx, account_id, TO)

    async def deliver() -> str:
        async with connected(ctx) as client:
            return await send(client)

    assert await asyncio.gather(*[deliver() for _ in range(5)]) == [DONE] * 5
    assert len(await stored(ctx, account_id)) == 1


async def test_an_endpoint_that_does_not_name_the_event_hears_nothing(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO)
    webhook = await webhook_endpoints.subscribe(ctx, account_id)
    assert await send(client) == DONE
    assert await webhook_endpoints.written_events(ctx, webhook) == []


async def test_an_answer_names_the_message_that_it_answers(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO)
    webhook = await webhook_endpoints.subscribe(ctx, account_id, "email.received")
    first, second = [await accepted_mail.accept(ctx, account_id) for _ in range(2)]
    other = (await account_registry.create(ctx, "Other")).id
    await accepted_mail.allow_sending(ctx, other, domain="other.example")
    theirs = await accepted_mail.accept(ctx, other, sender="a@other.example")
    unknown = "em_" + "0" * 28
    for fields in (
        f"In-Reply-To: <{first}@example.com>",
        f"References: <x@example.net> <{first}@example.com> <{second}@example.com> <{unknown}@example.com>",
        f"In-Reply-To: <{unknown}@example.com>\r\nReferences: <{first}@example.com>",
        f"In-Reply-To: <{theirs}@other.example>",
        "In-Reply-To: nonsense",
    ):
        assert await send(client, fields.encode() + b"\r\n" + MAIL) == DONE
    answered = {mail.email_id for mail in await stored(ctx, account_id)}
    assert answered == {first, second, None}
    told = [event["data"].get("email_id") for event in await webhook_endpoints.written_events(ctx, webhook)]
    assert sorted(map(str, told)) == sorted(map(str, [first, second, first, None, None]))


async def test_an_address_without_a_route_is_refused_and_guessing_ends_the_session(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, "support@in.example.com")
    unknown = ("sales@in.example.com", "support+x@in.example.com", "support@example.com", "@in.example.com")
    assert [await send(client, to=to) for to in unknown[:3]] == ["550 5.1.1"] * 3
    assert await send(client) == DONE
    for _ in range(session.MAX_UNKNOWN - 3):
        assert await send(client, to='"a b"@in.example.com') == "550 5.1.1"
    await client.mail("anna@example.net")
    with pytest.raises(aiosmtplib.SMTPRecipientRefused) as refused:
        await client.rcpt("x@in.example.com")
    assert refused.value.code == 421


async def test_routes_of_a_suspended_account_or_of_a_lost_domain_take_nothing(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    route = await routes.add(ctx, account_id, TO)
    await account_registry.suspend(ctx, account_id, reason="a test")
    assert await send(client) == "550 5.2.1"
    await account_registry.resume(ctx, account_id)
    assert await send(client) == DONE
    domain = await domains.by_name(ctx, account_id, "example.com")
    await domains.remove(ctx, account_id, domain.id)
    assert await send(client) == "550 5.1.1"
    await routes.remove(ctx, account_id, route.id)
    assert [mail.route_id for mail in await stored(ctx, account_id)] == [route.id]


async def test_an_account_that_is_suspended_meanwhile_gets_nothing(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO)
    await client.mail("anna@example.net")
    await client.rcpt(TO)
    await account_registry.suspend(ctx, account_id, reason="a test")
    with pytest.raises(aiosmtplib.SMTPDataError) as refused:
        await client.data(MAIL)
    assert (refused.value.code, refused.value.message[:5]) == (550, "5.2.1")
    assert await stored(ctx, account_id) == []


async def test_postmaster_of_a_route_s_domain_is_an_address_as_any_other(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, "*@in.example.com")
    assert await send(client, to="postmaster@in.example.com") == DONE
    assert await send(client, to="postmaster@mx.example.com") == "450 4.2.1"
    assert [mail.recipient for mail in await stored(ctx, account_id)] == ["postmaster@in.example.com"]


@pytest.mark.parametrize(
    "limit, value, reply",
    [
        ("MAX_MESSAGES_PER_DAY", 1, "452 4.2.2"),
        ("MAX_BYTES_PER_DAY", len(MAIL) + 1, "452 4.2.2"),
        ("MAX_PER_NETWORK", 1, "450 4.7.1"),
        ("MAX_BYTES_PER_NETWORK", len(MAIL) + 1, "450 4.7.1"),
    ],
)
@pytest.mark.parametrize("action", ["store", "drop"])
async def test_mail_over_a_quota_is_deferred_until_the_next_day(
    ctx: context.Context,
    account_id: str,
    client: aiosmtplib.SMTP,
    clock: contexts.Clock,
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    value: int,
    reply: str,
    action: str,
) -> None:
    await routes.add(ctx, account_id, TO, action=action)
    monkeypatch.setattr(receive, limit, value)
    assert await send(client) == DONE
    assert await send(client, b"X-Other: 1\r\n" + MAIL) == reply
    clock.now += 24 * 3600 * contexts.SECOND
    assert await send(client, b"X" + MAIL[1:]) == DONE
    assert len(await stored(ctx, account_id)) == (2 if action == "store" else 0)


async def test_a_mail_that_is_dropped_leaves_only_its_count(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO, action="drop")
    assert await send(client) == DONE
    assert await stored(ctx, account_id) == []
    async with ctx.store.reading() as tx:
        day = ctx.clock() // (24 * 3600 * contexts.SECOND)
        assert await received.count_of_day(tx, account_id, day) == received.Count(1, len(MAIL))


async def test_a_mail_that_has_passed_too_many_hosts_is_refused(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO)
    assert await send(client, b"Received: from a by b; today\r\n" * receive.MAX_HOPS + MAIL) == DONE
    assert await send(client, b"received : from a by b; today\r\n" * (receive.MAX_HOPS + 1) + MAIL) == "554 5.4.6"


@pytest.mark.parametrize(
    "content",
    [b"X-A: " + b"a" * 900 + b"\r\n", b"a:\r\n"],
    ids=["long", "many fields"],
)
async def test_a_header_without_end_is_refused(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP, content: bytes
) -> None:
    await routes.add(ctx, account_id, TO)
    assert await send(client, content * 2_001 + MAIL) == "552 5.3.4"
    assert await send(client, content * 100 + MAIL) == DONE


@pytest.mark.parametrize(
    "content",
    [
        b"\r\n",
        b"no header\r\n",
        b"From: \xff\xfe\r\nSubject: =?utf-8?b?////?=\r\n\r\n\x80\x81\r\n",
        b"From: a@b@c, <<>>\r\nDate: yesterday\r\nMessage-ID: <>\r\nReferences: " + b"<a@b> " * 900 + b"\r\n\r\n",
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
        + b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" * 300,
        b"Subject: a\0b\r\n\r\n\0\r\n",
    ],
    ids=["empty", "no header", "no encoding", "nonsense", "nested", "nul"],
)
@pytest.mark.parametrize("action", ["store", "forward"])
async def test_mail_that_is_hardly_mail_is_taken_as_it_is(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP, content: bytes, action: str
) -> None:
    await routes.add(ctx, account_id, TO, action=action, forward_to=FORWARDED_TO if action == "forward" else None)
    await webhook_endpoints.subscribe(ctx, account_id, "email.received")
    reply = await send(client, content)
    assert reply in {DONE, "550 5.6.0", "554 5.6.0"}, reply
    assert len(await stored(ctx, account_id)) == (reply == DONE and action == "store")


async def test_results_that_claim_to_be_of_this_host_are_removed(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO)
    forged = b"Authentication-Results: (x)\r\n\tMX.example.com; dmarc=pass header.from=bank.example\r\n"
    others = b"Authentication-Results: mx.google.com; spf=fail\r\n"
    assert await send(client, forged + others + MAIL) == DONE
    (mail,) = await stored(ctx, account_id)
    whole = await body(ctx, mail)
    assert whole.endswith(others + MAIL)
    assert b"bank.example" not in whole


@pytest.mark.parametrize(
    "forged",
    [
        b" ; dmarc=pass header.from=bank.example\r\n",
        b" ; dkim=pass\r\n\t; dmarc=pass header.from=bank.example\r\n",
        b'Authentication-Results: "mx.ex\\ample.com"; dmarc=pass header.from=bank.example\r\n',
    ],
    ids=["goes on with ours", "in two lines", "quoted"],
)
async def test_no_mail_adds_to_the_results_of_this_host(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP, forged: bytes
) -> None:
    await routes.add(ctx, account_id, TO)
    assert await send(client, forged + MAIL) == DONE
    (mail,) = await stored(ctx, account_id)
    whole = await body(ctx, mail)
    assert whole.endswith(b"; arc=none\r\n" + MAIL)
    assert b"bank.example" not in whole


@pytest.mark.parametrize("answer", [spamd_server.SPAM, b"nonsense", None], ids=["spam", "nonsense", "away"])
async def test_the_verdict_of_spamassassin_is_kept_and_its_failure_keeps_nothing_out(
    ctx: context.Context, account_id: str, answer: bytes | None
) -> None:
    await routes.add(ctx, account_id, TO)
    async with spamd_server.running(answer or b"") as (address, _):
        place = address if answer is not None else "127.0.0.1:1"
        async with connected(contexts.with_settings(ctx, "dashboard", spamd=place)) as client:
            assert await send(client) == DONE
    (mail,) = await stored(ctx, account_id)
    expected = '{"score":6.5,"required":5.0,"is_spam":true}' if answer == spamd_server.SPAM else None
    assert mail.spam == expected


async def test_a_store_that_fails_asks_for_another_try(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP, monkeypatch: pytest.MonkeyPatch
) -> None:
    await routes.add(ctx, account_id, TO)

    async def fail(*_arguments: object, **_named: object) -> None:
        raise errors.ServiceUnavailable("the store is away")

    for name in ("matching", "insert"):
        with monkeypatch.context() as patched:
            patched.setattr(received, name, fail)
            assert await send(client) == "451 4.3.0"
        assert await stored(ctx, account_id) == []
    assert await send(client) == DONE


async def test_a_network_that_keeps_all_places_is_asked_to_wait(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP, monkeypatch: pytest.MonkeyPatch
) -> None:
    await routes.add(ctx, account_id, TO)
    monkeypatch.setattr(receive, "WAIT_SECONDS", 0.01)
    monkeypatch.setattr(receive, "MAX_IN_WORK", 0)
    async with connected(ctx) as other:
        assert await send(other) == "451 4.3.2"
    assert await send(client) == DONE


FORWARDED_TO = "help@example.com"


async def forwarded(ctx: context.Context, account_id: str) -> list[messages.Outgoing]:
    async with ctx.store.reading() as tx:
        found = await queue_views.page(tx, queue_views.Filter(), state=None, limit=9)
        assert {each.email for each in found} <= {FORWARDED_TO}
        return await messages.outgoing(tx, [(account_id, each.message_id) for each in found])


async def test_a_mail_is_forwarded_as_it_is_with_a_return_path_of_ours_and_unsigned(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO, forward_to=FORWARDED_TO)
    # It names the account's own domain as its author, and gets no signature for that.
    forged = MAIL.replace(b"Anna <anna@example.net>", b"Boss <boss@example.com>")
    assert [await send(client, forged) for _ in range(2)] == [DONE] * 2
    (message,) = await forwarded(ctx, account_id)
    assert message.mime.endswith(b"\r\n" + forged)
    assert message.mime.startswith(b"Delivered-To: support@in.example.com\r\nReceived: from mail.example.net ")
    assert (message.sender_key, message.return_path_domain) == ("", "in.example.com")
    assert await domain_keys.signing_key(ctx, account_id, message.sender_key) is None
    assert await stored(ctx, account_id) == []
    shown, _ = await lookup.find(ctx, account_id, message.id)
    assert (shown.sender, shown.subject, shown.credits_reserved) == ("Boss <boss@example.com>", "My order", 1)
    who = accepted_mail.caller_of(account_id)
    async with ctx.store.transaction() as tx:
        await tx.run_script("UPDATE recipients SET status = 'failed'")
    with pytest.raises(errors.Conflict, match="route forwarded"):
        await resend.resend(ctx, who, message.id, to=resend.Recipients.ALL, request_id="req_1", key="again")


@pytest.mark.parametrize("body", [b"", b"\xe9 8-bit text\r\n"], ids=["ascii", "8-bit"])
async def test_a_signature_is_proven_here_and_where_the_mail_is_forwarded_to(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP, server: dns_server.DnsServer, body: bytes
) -> None:
    record = dkim_signatures.RECORD
    server.zones["sel._domainkey.example.net"] = {"TXT": [f'"{record[:200]}" "{record[200:]}"']}
    await routes.add(ctx, account_id, TO)
    await routes.add(ctx, account_id, "all@in.example.com", forward_to=FORWARDED_TO)
    signed = dkim_signatures.sign(MAIL + body, tags={"d": "example.net"})
    # Not from a host of its domain: only the signature proves it.
    assert await send(client, signed, sender="list@example.org") == DONE
    assert await send(client, signed, to="all@in.example.com") == DONE
    (mail,) = await stored(ctx, account_id)
    (message,) = await forwarded(ctx, account_id)
    there = await authenticate.authenticate(
        ctx, message.mime, client_address="192.0.2.1", helo="mx.example.com", sender="", party="test"
    )
    for results in (msgspec.json.decode(mail.authentication, type=authenticate.Results), there):
        assert [each.result for each in results.dkim] == ["pass"]
        assert (results.dmarc.result, results.dmarc.aligned_by) == ("pass", ("dkim",))


async def test_a_forwarded_mail_that_comes_back_is_a_loop(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO, forward_to=FORWARDED_TO)
    assert await send(client) == DONE
    (message,) = await forwarded(ctx, account_id)
    assert await send(client, message.mime, sender="bounces+x@in.example.com") == "554 5.4.6"
    assert await send(client, b"Delivered-To: other@in.example.com\r\n" + MAIL) == DONE


async def test_what_cannot_be_forwarded_is_deferred(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP, monkeypatch: pytest.MonkeyPatch
) -> None:
    route = await routes.add(ctx, account_id, TO, forward_to=FORWARDED_TO)
    large = MAIL + b"x" * 70 + b"\r\n"
    with monkeypatch.context() as patched:
        patched.setattr(forward, "MAX_BYTES", len(MAIL))
        assert await send(client, large) == "552 5.3.4"
    poor = (await account_registry.create(ctx, "Without credits")).id
    await domains.add(ctx, poor, "poor.example", verified=True)
    await routes.add(ctx, poor, "*@poor.example", forward_to="help@poor.example")
    assert await send(client, to="a@poor.example") == "450 4.2.1"
    # Whoever it goes to must still belong to the account.
    async with ctx.store.transaction() as tx:
        await received.remove_route(tx, account_id, route.id)
        await received.insert_route(tx, msgspec.structs.replace(route, forward_to="eve@example.net"))
    assert await send(client) == "450 4.2.1"
    assert await forwarded(ctx, account_id) == []


async def test_the_log_says_what_became_of_a_mail_and_names_no_address(ctx: context.Context, account_id: str) -> None:
    route = await routes.add(ctx, account_id, TO)
    lines = app_server.CapturedLog()
    async with connected(ctx, lines) as client:
        assert await send(client) == DONE
    (line,) = [line for line in lines.kept if line["event"] == "mail_received"]
    assert (line["result"], line["route_id"], line["account_id"]) == ("stored", route.id, account_id)
    assert "anna" not in str(lines.kept)


async def test_a_bounce_of_a_forwarded_mail_stands_with_it_and_its_checks_can_be_read(
    ctx: context.Context, account_id: str, client: aiosmtplib.SMTP
) -> None:
    await routes.add(ctx, account_id, TO, forward_to=FORWARDED_TO)
    assert await send(client) == DONE
    (message,) = await forwarded(ctx, account_id)
    await reports.settle(ctx)
    back = await reports.path(ctx, message.id, FORWARDED_TO)
    report = reports.report(reports.group(FORWARDED_TO)).replace(b"\n", b"\r\n")
    assert await send(client, report, to=back, sender="") == DONE
    async with ctx.store.reading() as tx:
        (bounce,) = await attempts.async_bounces(tx, account_id, message.id)
    assert bounce.response == "550 5.1.1 no such user"
    preview = await previews.of_message(ctx, account_id, message.id)
    origin = await content_checks.origin_of(ctx, account_id, message.id)
    checked = await content_checks.run(ctx, account_id, preview, origin, asks_spamd=False)
    assert checked.headers
