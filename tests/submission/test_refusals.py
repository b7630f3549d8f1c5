"""Every row of the table of errors that a message can meet over SMTP, and nothing is queued by any of them."""

import dataclasses
from collections.abc import AsyncIterator

import aiosmtplib
import msgspec
import pytest
import pytest_asyncio
import trustme

from postroad import config, errors
from postroad.mail.accept import queue_limit, submit, submit_mime
from postroad.model.mail import send_request, statuses
from postroad.roles import composition
from postroad.services.accounts import account_registry as accounts
from postroad.services.domains import domain_registry as domains
from postroad.services.people import credentials
from tests import accepted_mail
from tests.api import app_server
from tests.contexts import Clock
from tests.submission import submission_server
from tests.submission.submission_server import ADA, MESSAGE, SENDER, SubmissionServer, send
from tests.submission.test_replies import kinds


async def refusal(server: SubmissionServer, content: bytes = MESSAGE, *to: str, sender: str = SENDER) -> str:
    """The reply to a message that has to be refused, which leaves nothing and spoils nothing."""
    before = len(await server.stored())
    async with server.client() as client:
        with pytest.raises(aiosmtplib.SMTPDataError) as refused:
            await send(client, content, *to, sender=sender)
        if refused.value.code != 421:
            assert (await client.noop()).code == 250
    assert len(await server.stored()) == before
    line = server.logged("DATA")[-1]
    assert line["request_id"] in refused.value.message
    assert line["code"] in refused.value.message
    return f"{refused.value.code} {refused.value.message}"


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
async def test_each_error_is_said_with_its_reply(
    server: SubmissionServer, kind: type[errors.PostroadError], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = {"allowed": ("GET",)} if kind is errors.MethodNotAllowed else {}

    async def fail(*_arguments: object, **_named: object) -> None:
        raise kind("no such luck", **arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(submit_mime, "submit_mime", fail)
    reported = await refusal(server)
    assert reported.startswith(f"{kind.smtp_reply} {kind.code}: no such luck")


async def test_what_is_no_message_is_invalid(server: SubmissionServer) -> None:
    reported = await refusal(server, b"no field at all\r\n" + MESSAGE)
    assert reported.startswith("550 5.6.0 invalid_request: ")


async def test_a_domain_of_nobody_is_forbidden(server: SubmissionServer) -> None:
    reported = await refusal(server, MESSAGE.replace(b"shop@example.com", b"shop@elsewhere.example"))
    assert reported.startswith("550 5.7.1 forbidden: ")
    assert "elsewhere.example" in reported


async def test_a_domain_that_is_not_verified_is_forbidden(server: SubmissionServer) -> None:
    await domains.add(server.ctx, server.account.id, "unproven.example", verified=False)
    reported = await refusal(server, MESSAGE.replace(b"shop@example.com", b"shop@unproven.example"), sender="")
    assert reported.startswith("550 5.7.1 forbidden: ")


async def test_an_envelope_sender_of_somebody_else_is_forbidden(server: SubmissionServer) -> None:
    reported = await refusal(server, sender="boss@elsewhere.example")
    assert reported.startswith("550 5.7.1 forbidden: ")


@pytest.mark.parametrize(
    "content, reply",
    [
        (b"From: boss@example.com\r\n" + MESSAGE, "550 5.7.1 forbidden: "),
        (b"Subject: x\r\n\r\nHello\r\n", "550 5.6.0 invalid_request: "),
    ],
)
async def test_a_message_has_one_sender(server: SubmissionServer, content: bytes, reply: str) -> None:
    assert (await refusal(server, content)).startswith(reply)


async def test_a_message_that_goes_in_circles_is_refused(server: SubmissionServer) -> None:
    reported = await refusal(server, b"Received: by somewhere; Mon, 1 Jan 2024 00:00:00 +0000\r\n" * 101 + MESSAGE)
    assert reported.startswith("554 5.4.6 invalid_request: ")


async def test_more_recipients_than_credits_are_refused(server: SubmissionServer) -> None:
    poor = await accounts.create(server.ctx, "Poor")
    await accepted_mail.allow_sending(server.ctx, poor.id, domain="poor.example", amount=1)
    credential, password = await credentials.create(server.ctx, poor.id, "main")
    server = dataclasses.replace(server, account=poor, credential=credential, password=password)
    reported = await refusal(
        server, MESSAGE.replace(b"@example.com", b"@poor.example"), ADA, "bob@example.net", sender="shop@poor.example"
    )
    assert reported.startswith("452 4.7.1 insufficient_credits: ")


async def test_a_suspended_account_is_told_why(server: SubmissionServer) -> None:
    await accounts.suspend(server.ctx, server.account.id, "unpaid")
    reported = await refusal(server)
    assert reported.startswith("550 5.7.1 account_suspended: ")
    assert "unpaid" in reported


def padded(size: int) -> bytes:
    """A message of exactly so many octets."""
    lines, rest = divmod(size - len(MESSAGE) - 2, 1000)
    return MESSAGE + (b"x" * 998 + b"\r\n") * lines + b"x" * rest + b"\r\n"


async def test_a_message_that_is_larger_than_announced_is_refused_without_being_kept(server: SubmissionServer) -> None:
    reported = await refusal(server, padded(10_485_761))
    assert reported.startswith("552 5.3.4 payload_too_large: ")
    assert server.ctx.metrics.refused.values["smtp", "payload_too_large"] == 1


async def test_what_is_too_large_is_said_before_it_is_sent(server: SubmissionServer) -> None:
    async with server.client() as client:
        assert client.esmtp_extensions["size"] == "10485760"
        with pytest.raises(aiosmtplib.SMTPSenderRefused) as refused:
            await client.mail(SENDER, options=["SIZE=10485761"])
        assert (await client.mail(SENDER, options=["SIZE=10485760"])).code == 250
    assert refused.value.code == 552
    assert refused.value.message.startswith("5.3.4 payload_too_large: ")


async def test_the_size_is_that_of_what_the_client_sent_whatever_is_added_or_left_out(server: SubmissionServer) -> None:
    bcc = b"Bcc: hidden@example.net\r\n" * 100
    async with server.client() as client:
        await send(client, padded(10_485_760))
        await send(client, bcc + padded(10_485_760 - len(bcc)))
    less, more = sorted(await server.stored(), key=lambda stored: len(stored.body))
    assert len(less.body) < 10_485_760 < len(more.body)
    assert (await refusal(server, bcc + padded(10_485_761 - len(bcc)))).startswith("552 5.3.4 payload_too_large: ")


@pytest.mark.parametrize("end", [b"\r.\r", b"\r\n.\r"])
async def test_a_bare_cr_is_refused_and_makes_no_second_message(server: SubmissionServer, end: bytes) -> None:
    begin = b"MAIL FROM:<shop@example.com>\r\nRCPT TO:<ada@example.net>\r\nDATA\r\n"
    async with server.raw() as connection:
        await connection.say(begin, replies=3)
        reply = await connection.say(MESSAGE + end + begin + MESSAGE + b".\r\n")
        assert (await connection.say(b"NOOP\r\n")).startswith(b"250 ")
    assert reply.startswith(b"550 5.6.0 invalid_request: ")
    assert await server.stored() == []
    (line,) = server.logged("DATA")
    assert line["request_id"] in reply.decode()


async def test_a_queue_over_its_mark_asks_for_another_try(
    server: SubmissionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise errors.ServiceUnavailable("the queue is full", retry_after=30)

    monkeypatch.setattr(type(server.ctx.queue_limit), "check", lambda *_, **_named: full())
    reported = await refusal(server)
    assert reported.startswith("421 4.3.2 service_unavailable: ")


async def test_an_account_at_its_storage_quota_has_no_storage_left(
    server: SubmissionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_limit, "MEBIBYTE", 1)  # a quota of some thousand bytes
    reported = await refusal(server, padded(12_000))
    assert reported.startswith("552 5.3.4 payload_too_large: the message is larger than the storage quota ")
    async with server.client() as client:
        await send(client, padded(6_000))
    reported = await refusal(server, padded(6_000))
    assert reported.startswith("452 4.3.1 rate_limited: queued and scheduled mail of this account uses ")
    assert "Retry-After: 30" in reported


async def test_a_store_that_is_away_asks_for_another_try(
    server: SubmissionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_arguments: object, **_named: object) -> None:
        raise errors.TemporaryFailure("could not be stored in time")

    monkeypatch.setattr(type(server.ctx.accept_commits), "submit", away)
    reported = await refusal(server)
    assert reported.startswith("451 4.3.0 temporary_failure: ")


@pytest_asyncio.fixture
async def guarded(
    request: pytest.FixtureRequest,
    settings: config.Settings,
    clock: Clock,
    authority: trustme.CA,
) -> AsyncIterator[SubmissionServer]:
    """A listener whose settings are those of the test's parameter."""
    for section, values in request.param.items():
        changed = msgspec.structs.replace(getattr(settings, section), **values)
        settings = msgspec.structs.replace(settings, **{section: changed})
    lines = app_server.CapturedLog()
    async with composition.open_context(settings, clock=clock) as ctx:
        account = await accounts.create(ctx, "Shop")
        await accepted_mail.allow_sending(ctx, account.id)
        credential, password = await credentials.create(ctx, account.id, "main")
        async with submission_server.running(ctx, lines=lines) as addresses:
            yield SubmissionServer(
                ctx=ctx,
                account=account,
                credential=credential,
                password=password,
                lines=lines,
                addresses=addresses,
                authority=authority,
            )


@pytest.mark.parametrize("guarded", [{"limits": {"request_rate": 1, "request_burst": 2}}], indirect=True, ids=["rate"])
async def test_too_many_messages_over_http_or_smtp_are_refused_temporarily(guarded: SubmissionServer) -> None:
    who = accepted_mail.caller_of(guarded.account.id, credential_id=guarded.credential.id)
    request = send_request.SendRequest(sender=SENDER, to=(ADA,), subject="By HTTP", text="Hello")
    await submit.submit(guarded.ctx, who, request, request_id="req_" + "0" * 28, source=statuses.Source.API, key=None)
    async with guarded.client() as client:
        await send(client)
    reported = await refusal(guarded)
    assert reported.startswith("451 4.7.1 rate_limited: ")


@pytest.mark.parametrize(
    "guarded", [{"warmup": {"enabled": True, "recipients_per_day": (50,)}}], indirect=True, ids=["warmup"]
)
async def test_a_domain_that_warms_up_asks_for_another_try(guarded: SubmissionServer) -> None:
    fifty = [f"to-{number}@example.net" for number in range(50)]
    async with guarded.client() as client:
        await send(client, MESSAGE, *fifty)
    reported = await refusal(guarded)
    assert reported.startswith("451 4.7.1 warmup_limited: ")
