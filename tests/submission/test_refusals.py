"""Refusals over SMTP: their reply, their line in the log, and that nothing is queued by any of them."""

import aiosmtplib
import pytest

from postroad import errors
from postroad.mail.accept import queue_limit, submit, submit_mime
from postroad.model.delivery import throttle
from postroad.model.mail import send_request, statuses
from tests import accepted_mail
from tests.submission.submission_server import ADA, MESSAGE, SENDER, SubmissionServer, send


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


@pytest.mark.parametrize("kind", [errors.Forbidden, errors.InsufficientCredits, errors.ServiceUnavailable])
async def test_an_error_is_said_with_its_reply(
    server: SubmissionServer, kind: type[errors.PostroadError], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of each class of replies; the table of all errors is in test_replies.py."""

    async def fail(*_arguments: object, **_named: object) -> None:
        raise kind("no such luck") from OSError("disk full")

    monkeypatch.setattr(submit_mime, "submit_mime", fail)
    reported = await refusal(server)
    assert reported.startswith(f"{kind.smtp_reply} {kind.code}: no such luck")
    assert "disk full" not in reported
    causes = [line["cause"] for line in server.lines.kept if line["event"] == "service_unavailable"]
    assert causes == (["OSError: disk full"] if kind is errors.ServiceUnavailable else [])


@pytest.mark.parametrize(
    "content, reply",
    [
        (b"From: boss@example.com\r\n" + MESSAGE, "550 5.7.1 forbidden: "),
        (b"Subject: x\r\n\r\nHello\r\n", "550 5.6.0 invalid_request: "),
    ],
)
async def test_a_message_has_one_sender(server: SubmissionServer, content: bytes, reply: str) -> None:
    assert (await refusal(server, content)).startswith(reply)


def padded(size: int) -> bytes:
    """A message of exactly so many octets."""
    lines, rest = divmod(size - len(MESSAGE) - 2, 1000)
    return MESSAGE + (b"x" * 998 + b"\r\n") * lines + b"x" * rest + b"\r\n"


async def test_the_size_is_that_of_what_the_client_sent_whatever_is_added_or_left_out(server: SubmissionServer) -> None:
    bcc = b"Bcc: hidden@example.net\r\n" * 100
    async with server.client() as client:
        await send(client, padded(10_485_760))
        await send(client, bcc + padded(10_485_760 - len(bcc)))
    less, more = sorted(await server.stored(), key=lambda stored: len(stored.body))
    assert len(less.body) < 10_485_760 < len(more.body)
    assert (await refusal(server, bcc + padded(10_485_761 - len(bcc)))).startswith("552 5.3.4 payload_too_large: ")


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


async def test_too_many_messages_over_http_or_smtp_are_refused_temporarily(server: SubmissionServer) -> None:
    server.ctx.rate_limiter.policy = throttle.RateLimit(rate=1, burst=2)
    who = accepted_mail.caller_of(server.account.id, credential_id=server.credential.id)
    request = send_request.SendRequest(sender=SENDER, to=(ADA,), subject="By HTTP", text="Hello")
    await submit.submit(server.ctx, who, request, request_id="req_" + "0" * 28, source=statuses.Source.API, key=None)
    async with server.client() as client:
        await send(client)
    assert (await refusal(server)).startswith("451 4.7.1 rate_limited: ")
