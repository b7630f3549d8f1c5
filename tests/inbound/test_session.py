"""The inbound listener, over real SMTP: tokens are let in, strangers are not, and 250 means that the report is kept."""

import base64
import contextlib
import email
import email.policy
import gzip
from collections.abc import AsyncIterator

import aiosmtplib
import pytest

from postroad import context, errors
from postroad.inbound import session
from postroad.mail.results import async_bounces
from postroad.model.units import times
from postroad.services.domains import received_reports
from postroad.services.messages import lookup
from postroad.storage.mail import attempts as stored
from postroad.storage.mail import queue_views, suppressions
from postroad.storage.people import accounts
from tests import accepted_mail, bounce_counts, contexts, dns_server, feedback_loop, reports
from tests.api import app_server
from tests.protocol.reports import complaints, sample_reports

ADA = "ada@example.net"
REPORT = reports.report(reports.group(ADA)).replace(b"\n", b"\r\n")


@pytest.fixture
def lines() -> app_server.CapturedLog:
    return app_server.CapturedLog()


@contextlib.asynccontextmanager
async def connected(ctx: context.Context, lines: app_server.CapturedLog) -> AsyncIterator[aiosmtplib.SMTP]:
    listener = session.listener(ctx, name="mx.example.com", log=lines.logger())
    await listener.start("127.0.0.1", 0)
    host, port = listener.address
    try:
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=60) as client:
            yield client
    finally:
        await listener.stop(grace_seconds=10)


@pytest.fixture
async def client(ctx: context.Context, lines: app_server.CapturedLog) -> AsyncIterator[aiosmtplib.SMTP]:
    async with connected(ctx, lines) as client:
        yield client


@pytest.fixture
async def message_id(ctx: context.Context, account: accounts.Account) -> str:
    await accepted_mail.allow_sending(ctx, account.id)
    message_id = await accepted_mail.accept(ctx, account.id, to=(ADA,))
    await reports.settle(ctx)
    return message_id


async def kept_of(ctx: context.Context, account_id: str, message_id: str) -> list[stored.AsyncBounce]:
    async with ctx.store.reading() as tx:
        return await stored.async_bounces(tx, account_id, message_id)


async def send(client: aiosmtplib.SMTP, recipient: str, content: bytes = REPORT, *, sender: str = "") -> int:
    """Hand mail in, and return the code of the last reply; a refused recipient is an exception."""
    await client.mail(sender)
    await client.rcpt(recipient)
    return (await client.data(content)).code


async def test_a_report_is_kept_before_it_is_acknowledged(
    ctx: context.Context,
    account: accounts.Account,
    client: aiosmtplib.SMTP,
    message_id: str,
    lines: app_server.CapturedLog,
) -> None:
    await client.ehlo()
    assert await send(client, (await reports.path(ctx, message_id)).upper()) == 250
    (kept,) = await kept_of(ctx, account.id, message_id)
    assert kept.response == "550 5.1.1 no such user"
    (line,) = [line for line in lines.kept if line["event"] == "delivery_report"]
    assert (line["level"], line["message_id"], line["result"]) == ("info", message_id, "recorded")
    assert ADA not in str(lines.kept)


async def test_only_genuine_tokens_are_let_in(ctx: context.Context, client: aiosmtplib.SMTP, message_id: str) -> None:
    await client.ehlo()
    genuine = await reports.path(ctx, message_id)
    forged = genuine.replace(genuine[-13], "0" if genuine[-13] != "0" else "1")
    for stranger in ("postmaster@example.com", "ada@example.net", "bounces+x@example.com", forged):
        await client.mail("spam@example.org")
        with pytest.raises(aiosmtplib.SMTPRecipientRefused) as refused:
            await client.rcpt(stranger)
        assert refused.value.code == 550
        assert refused.value.message.startswith("5.1.1")
        with pytest.raises(aiosmtplib.SMTPDataError):
            await client.data(REPORT)
        await client.rset()


async def test_mail_to_postmaster_is_deferred_until_there_is_an_operator(client: aiosmtplib.SMTP) -> None:
    await client.ehlo()
    await client.mail("eve@example.org")
    with pytest.raises(aiosmtplib.SMTPRecipientRefused) as refused:
        await client.rcpt("postmaster@mx.example.com")
    assert (refused.value.code, refused.value.message[:5]) == (450, "4.2.1")


async def test_mail_to_postmaster_and_abuse_is_queued_for_the_operator(
    ctx: context.Context, account: accounts.Account, lines: app_server.CapturedLog
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    ours = contexts.with_settings(ctx, "operator", email="ops@example.net", sender="service@example.com")
    async with connected(ours, lines) as client:
        await client.ehlo()
        for recipient in ("Postmaster", "ABUSE@mx.example.com", "postmaster@bounces.example.com"):
            assert await send(client, recipient, sender="eve@example.org") == 250
    async with ctx.store.reading() as tx:
        found = await queue_views.page(tx, queue_views.Filter(), state=None, limit=9)
    assert [one.email for one in found] == ["ops@example.net"] * 3
    forwarded = [line for line in lines.kept if line["event"] == "mail_to_operator"]
    assert [(line["result"], line["client_address"]) for line in forwarded] == [("forwarded", "127.0.0.1")] * 3


async def test_there_is_one_return_path_in_a_transaction(
    ctx: context.Context, client: aiosmtplib.SMTP, message_id: str
) -> None:
    await client.ehlo()
    await client.mail("")
    await client.rcpt(await reports.path(ctx, message_id))
    with pytest.raises(aiosmtplib.SMTPRecipientRefused) as refused:
        await client.rcpt(reports.unknown_path(ctx))
    assert refused.value.code == 452
    assert (await client.data(REPORT)).code == 250


@pytest.mark.parametrize("sender", ["", "ada@example.net"])
async def test_mail_that_is_no_report_is_taken_and_dropped(
    ctx: context.Context, client: aiosmtplib.SMTP, message_id: str, lines: app_server.CapturedLog, sender: str
) -> None:
    await client.ehlo()
    reply = b"Auto-Submitted: auto-replied\r\n\r\nI am away.\r\n"
    assert await send(client, await reports.path(ctx, message_id), reply, sender=sender) == 250
    assert [line["level"] for line in lines.kept if line["event"] == "mail_to_return_path_dropped"] == ["debug"]


async def test_a_report_about_a_message_that_is_gone_is_taken(ctx: context.Context, client: aiosmtplib.SMTP) -> None:
    await client.ehlo()
    assert await send(client, reports.unknown_path(ctx)) == 250


async def test_a_report_may_carry_a_large_original(
    ctx: context.Context, account: accounts.Account, client: aiosmtplib.SMTP, message_id: str
) -> None:
    await client.ehlo()
    original = b"--b\r\nContent-Type: message/rfc822\r\n\r\n" + b"x" * 76 + b"\r\n" * 1000
    assert await send(client, await reports.path(ctx, message_id), REPORT.replace(b"--b--\r\n", original * 100)) == 250
    assert len(await kept_of(ctx, account.id, message_id)) == 1


@pytest.mark.parametrize(
    "problem, event, level",
    [
        (errors.ServiceUnavailable("the store is away"), "report_not_stored", "warning"),
        (LookupError("a bug"), "inbound_failed", "error"),
    ],
    ids=["away", "bug"],
)
async def test_what_cannot_be_kept_is_logged_and_asks_for_another_try(
    ctx: context.Context,
    client: aiosmtplib.SMTP,
    message_id: str,
    lines: app_server.CapturedLog,
    monkeypatch: pytest.MonkeyPatch,
    problem: Exception,
    event: str,
    level: str,
) -> None:
    async def fail(*_arguments: object) -> None:
        raise problem

    await client.ehlo()
    with monkeypatch.context() as patched:
        patched.setattr(async_bounces, "receive", fail)
        with pytest.raises(aiosmtplib.SMTPDataError) as refused:
            await send(client, await reports.path(ctx, message_id))
    assert refused.value.code == 451
    assert [line["level"] for line in lines.kept if line["event"] == event] == [level]
    assert await send(client, await reports.path(ctx, message_id)) == 250


async def test_what_is_too_large_is_said_before_it_is_sent(client: aiosmtplib.SMTP) -> None:
    await client.ehlo()
    assert client.esmtp_extensions["size"] == str(session.MAX_MESSAGE_BYTES)
    with pytest.raises(aiosmtplib.SMTPSenderRefused) as refused:
        await client.mail("", options=[f"SIZE={session.MAX_MESSAGE_BYTES + 1}"])
    assert refused.value.code == 552


@pytest.fixture
def complaining(ctx: context.Context) -> context.Context:
    """An installation with a domain of its own for return paths, and so with an address for complaints."""
    return contexts.with_settings(ctx, "delivery", return_path_domain="return.example.com")


async def suppressed(ctx: context.Context, account_id: str) -> list[str]:
    async with ctx.store.reading() as tx:
        return [row.source for row in await suppressions.of_account(tx, account_id, after="", limit=10)]


async def test_a_complaint_is_kept_before_it_is_acknowledged(
    complaining: context.Context, account: accounts.Account, message_id: str, lines: app_server.CapturedLog
) -> None:
    content = complaints.report(complaints.FULL, await reports.path(complaining, message_id))
    async with connected(complaining, lines) as client:
        assert await send(client, "Complaints@return.example.com", content, sender="fbl@provider.example") == 250
        assert await send(client, "complaints@return.example.com", content) == 250
    assert [row.action for row in await kept_of(complaining, account.id, message_id)] == ["complaint"]
    assert await suppressed(complaining, account.id) == ["complaint"]
    reported = [line for line in lines.kept if line["event"] == "complaint"]
    assert [(line["level"], line["result"], line["feedback_type"]) for line in reported] == [
        ("info", "recorded", "abuse"),
        ("debug", "repeated", "abuse"),
    ]
    assert reported[0]["message_id"] == message_id
    assert ADA not in str(lines.kept)


async def test_a_complaint_may_come_to_the_return_path_itself(
    ctx: context.Context, account: accounts.Account, client: aiosmtplib.SMTP, message_id: str
) -> None:
    await client.ehlo()
    hidden = complaints.report(complaints.REDACTED, "")
    assert await send(client, await reports.path(ctx, message_id), hidden) == 250
    assert await suppressed(ctx, account.id) == ["complaint"]


async def test_a_complaint_may_come_to_the_address_that_the_message_names(
    ctx: context.Context, account: accounts.Account, lines: app_server.CapturedLog
) -> None:
    """RFC 9477: the report need not have more of the message than its id."""
    listening = contexts.with_settings(ctx, "inbound", listen="127.0.0.1:25")
    named = contexts.with_settings(listening, "delivery", return_path_domain="Bounces.example.com")
    await accepted_mail.allow_sending(named, account.id)
    message_id = await accepted_mail.accept(named, account.id, to=(ADA,))
    await reports.settle(named)
    message = email.message_from_bytes(await lookup.raw(named, account.id, message_id), policy=email.policy.default)
    where, _, kind = message["CFBL-Address"].partition("; ")
    local = (await reports.path(named, message_id)).partition("@")[0]
    assert (where, kind) == (f"{local}@bounces.example.com", "report=arf")
    async with connected(named, lines) as client:
        assert await send(client, where, complaints.report(complaints.REDACTED, ""), sender="fbl@isp.example") == 250
    assert await suppressed(named, account.id) == ["complaint"]


async def test_a_message_names_no_address_for_complaints_that_nobody_reads(
    complaining: context.Context, account: accounts.Account
) -> None:
    await accepted_mail.allow_sending(complaining, account.id)
    message_id = await accepted_mail.accept(complaining, account.id, to=(ADA,))
    assert b"CFBL-Address" not in await lookup.raw(complaining, account.id, message_id)


async def test_a_recipient_silences_nobody_but_itself_and_suspends_nobody(
    complaining: context.Context, account: accounts.Account, lines: app_server.CapturedLog
) -> None:
    """Forged reports about the other recipients, Bcc included, and as many as there are plus-addresses."""
    await accepted_mail.allow_sending(complaining, account.id)
    await bounce_counts.count(complaining, account.id, recipients=300)
    others = ("bob@example.net", "hidden@example.net")
    mine = [f"eve+{number}@example.net" for number in range(3)]
    async with connected(complaining, lines) as client:
        for email in mine:
            message_id = await accepted_mail.accept(complaining, account.id, to=(email, others[0]), bcc=(others[1],))
            await reports.settle(complaining)
            token = await reports.path(complaining, message_id, email)
            bounce = reports.report(*map(reports.group, (*others, email))).replace(b"\n", b"\r\n")
            assert await send(client, token, bounce) == 250
            for other in others:
                complaint = complaints.report(complaints.FULL.replace("ada@example.net", other), token)
                assert await send(client, "complaints@return.example.com", complaint) == 250
                assert await send(client, token, complaint) == 250
    async with complaining.store.reading() as tx:
        listed = await suppressions.of_account(tx, account.id, after="", limit=10)
    assert [row.email_key for row in listed] == mine
    counted = await bounce_counts.counted(complaining, account.id)
    assert (counted.bounces, counted.complaints) == (0, 0)


async def test_other_mail_to_the_address_for_complaints_is_taken_and_dropped(
    complaining: context.Context, account: accounts.Account, message_id: str, lines: app_server.CapturedLog
) -> None:
    forged = complaints.report(complaints.FULL, "bounces+" + "0" * 52 + "@return.example.com")
    async with connected(complaining, lines) as client:
        for content in (b"Subject: hello\r\n\r\nhello\r\n", REPORT, forged):
            assert await send(client, "complaints@return.example.com", content) == 250
        with pytest.raises(aiosmtplib.SMTPRecipientRefused):
            await send(client, "complaints@example.com")
    assert await kept_of(complaining, account.id, message_id) == []
    assert {line["level"] for line in lines.kept if line["event"] != "started"} == {"debug"}


async def test_without_a_domain_for_return_paths_there_is_no_address_for_complaints(client: aiosmtplib.SMTP) -> None:
    await client.ehlo()
    for domain in ("example.com", "return.example.com"):
        await client.mail("")
        with pytest.raises(aiosmtplib.SMTPRecipientRefused):
            await client.rcpt(f"complaints@{domain}")
        await client.rset()


async def test_a_reporter_is_asked_to_come_again_when_its_key_cannot_be_looked_up(
    ctx: context.Context, message_id: str, lines: app_server.CapturedLog
) -> None:
    zones: dns_server.Zones = {feedback_loop.NAME: dns_server.Fault.SERVFAIL}
    async with feedback_loop.listed(ctx, zones=zones) as listed, connected(listed, lines) as client:
        path = await reports.path(ctx, message_id)
        with pytest.raises(aiosmtplib.SMTPDataError) as refused:
            await send(client, path, feedback_loop.signed(REPORT, sent_to=path))
        assert refused.value.code == 451
        assert await send(client, path, REPORT) == 250


async def test_what_the_bounce_guard_does_because_of_a_report_is_logged(
    ctx: context.Context,
    account: accounts.Account,
    message_id: str,
    lines: app_server.CapturedLog,
) -> None:
    await bounce_counts.count(ctx, account.id, recipients=200, bounces=15)
    async with feedback_loop.listed(ctx) as listed, connected(listed, lines) as client:
        path = await reports.path(ctx, message_id)
        assert await send(client, path, feedback_loop.signed(REPORT, sent_to=path)) == 250
    (line,) = [line for line in lines.kept if line["event"] == "account_suspended"]
    assert (line["account_id"], line["recipients"], line["bounces"]) == (account.id, 200, 16)
    assert ctx.metrics.guard.values["suspended", "bounces"] == 1


async def test_reports_about_a_verified_domain_are_let_in_and_what_is_in_them_decides(
    ctx: context.Context, account: accounts.Account, lines: app_server.CapturedLog, clock: contexts.Clock
) -> None:
    clock.now = (sample_reports.FIRST_DAY + 1) * times.DAY
    await accepted_mail.allow_sending(ctx, account.id)
    sample = sample_reports.make(1)[0]
    bomb = gzip.compress(b"<feedback>" + b" " * 40 * 1024 * 1024)
    head = b"From: <a@mail.example>\r\nContent-Type: application/gzip\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    async with feedback_loop.listed(ctx, zones={}) as asking, connected(asking, lines) as client:
        await client.ehlo()
        for content in (sample.mail, sample.mail, head + base64.encodebytes(bomb), b"Hello\r\n"):
            assert await send(client, "Reports@bounces.Example.com", content, sender="a@mail.example") == 250
    found = [line for line in lines.kept if line["event"] == "report_received"]
    assert [line["result"] for line in found] == ["stored", "repeated", "unreadable", "unreadable"]
    assert {(line["domain"], line["client_address"]) for line in found} == {("example.com", "127.0.0.1")}


@pytest.mark.parametrize("address", ["reports@bounces.example.net", "reports+example.com@bounces.example.com"])
async def test_reports_about_a_domain_that_nobody_has_verified_are_refused(
    ctx: context.Context, account: accounts.Account, client: aiosmtplib.SMTP, address: str
) -> None:
    await accepted_mail.allow_sending(ctx, account.id)
    await client.ehlo()
    await client.mail("a@mail.example")
    with pytest.raises(aiosmtplib.SMTPRecipientRefused) as refused:
        await client.rcpt(address)
    assert refused.value.code == 550


async def test_reports_come_again_when_there_are_too_many_today(
    ctx: context.Context, account: accounts.Account, client: aiosmtplib.SMTP, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received_reports, "MAX_FROM_ONE", 1)
    await accepted_mail.allow_sending(ctx, account.id)
    await client.ehlo()
    assert await send(client, "reports@bounces.example.com", b"Hello\r\n") == 250
    with pytest.raises(aiosmtplib.SMTPDataError) as refused:
        await send(client, "reports@bounces.example.com", b"Hello again\r\n")
    assert refused.value.code == 451
