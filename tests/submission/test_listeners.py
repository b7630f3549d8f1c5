"""The listeners for submission: TLS from the start or later, a renewed certificate, limits, and the stop."""

import asyncio
import contextlib
import smtplib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiosmtplib
import msgspec
import pytest
import trustme

from postroad import config, context
from postroad.roles import composition
from postroad.services.operations import certificates
from postroad.submission import listeners
from tests.api import app_server
from tests.contexts import Clock
from tests.submission import submission_server
from tests.submission.submission_server import ADA, HOST, MESSAGE, NAME, SENDER, TIMEOUT_SECONDS, SubmissionServer, send


def changed(settings: config.Settings, **submission: object) -> config.Settings:
    return msgspec.structs.replace(settings, submission=msgspec.structs.replace(settings.submission, **submission))


@contextlib.asynccontextmanager
async def listening_with(settings: config.Settings, clock: Clock) -> AsyncIterator[dict[str, tuple[str, int]]]:
    async with (
        composition.open_context(settings, clock=clock) as ctx,
        submission_server.running(ctx, lines=app_server.CapturedLog()) as addresses,
    ):
        yield dict(addresses)


async def test_a_client_begins_in_the_clear_and_goes_on_with_tls(server: SubmissionServer) -> None:
    def work() -> None:
        with smtplib.SMTP(*server.addresses["listen"], timeout=TIMEOUT_SECONDS) as client:
            client.ehlo()
            assert client.has_extn("starttls")
            client.starttls(context=server.trusting())
            client.ehlo()
            assert not client.has_extn("starttls")
            client.login(*server.login)
            assert client.sendmail(SENDER, [ADA], MESSAGE) == {}

    await asyncio.to_thread(work)
    (stored,) = await server.stored()
    assert b"with ESMTPSA" in stored.body


async def test_a_client_begins_with_tls(server: SubmissionServer) -> None:
    def work() -> None:
        where, trusting = server.addresses["tls_listen"], server.trusting()
        with smtplib.SMTP_SSL(*where, context=trusting, timeout=TIMEOUT_SECONDS) as client:
            client.login(*server.login)
            assert not client.has_extn("starttls")
            assert client.sendmail(SENDER, [ADA], MESSAGE) == {}

    await asyncio.to_thread(work)
    (stored,) = await server.stored()
    assert b"with ESMTPSA" in stored.body


async def test_passwords_are_not_taken_in_the_clear_unless_that_is_set(settings: config.Settings, clock: Clock) -> None:
    async with listening_with(changed(settings, auth_without_tls=False), clock) as addresses:
        host, port = addresses["listen"]
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=TIMEOUT_SECONDS) as client:
            await client.ehlo()
            assert not client.supports_extension("auth")
            reply = await client.execute_command(b"AUTH", b"PLAIN", b"AGEAYg==")
            assert reply.code in {530, 538}
            with pytest.raises(aiosmtplib.SMTPSenderRefused) as refused:
                await client.mail(SENDER)
            assert refused.value.code == 530


async def test_the_listener_announces_what_it_accepts(server: SubmissionServer) -> None:
    async with server.client(log_in=False) as client:
        offered = client.esmtp_extensions
        assert offered["size"] == "10485760"
        expected = {"pipelining", "8bitmime", "smtputf8", "chunking", "enhancedstatuscodes", "dsn", "starttls", "auth"}
        assert expected <= offered.keys()
        assert client.server_auth_methods == ["plain", "login"]
        assert client.last_ehlo_response is not None
        assert client.last_ehlo_response.message.startswith(NAME)


async def test_without_a_certificate_there_is_no_tls(settings: config.Settings, clock: Clock) -> None:
    tls = msgspec.structs.replace(settings.tls, certificate="", key="")
    plain = msgspec.structs.replace(changed(settings, tls_listen=""), tls=tls)
    async with listening_with(plain, clock) as addresses:
        host, port = addresses["listen"]
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=TIMEOUT_SECONDS) as client:
            await client.ehlo()
            assert not client.supports_extension("starttls")
            assert client.supports_extension("auth")


async def test_a_renewed_certificate_is_used_without_a_restart(
    ctx: context.Context, settings: config.Settings, tmp_path: Path, lines: app_server.CapturedLog
) -> None:
    certificate = certificates.load(settings)
    assert certificate is not None
    listener = listeners.listeners(ctx, name=NAME, certificate=certificate, log=lines.logger())["tls_listen"]
    await listener.start(HOST, 0)
    renewed = trustme.CA()
    try:
        submission_server.issue(renewed, tmp_path)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while not await _is_trusted(listener.address, renewed):
                await asyncio.sleep(0.02)
    finally:
        await listener.stop(grace_seconds=submission_server.GRACE_SECONDS)
    reported = [(line["detail"], line["level"]) for line in lines.kept if line["event"] == "submission_certificate"]
    assert reported[-1] == (f"the certificate in {settings.tls.certificate} was reloaded", "info")


async def test_a_certificate_that_cannot_be_used_is_a_warning_and_the_old_one_stays(
    ctx: context.Context, certificate: submission_server.Files, lines: app_server.CapturedLog, authority: trustme.CA
) -> None:
    loaded = certificates.load(ctx.settings)
    listener = listeners.listeners(ctx, name=NAME, certificate=loaded, log=lines.logger())["tls_listen"]
    await listener.start(HOST, 0)
    try:
        certificate.chain.write_bytes(b"")
        listener.on_sweep()
        assert await _is_trusted(listener.address, authority)
    finally:
        await listener.stop(grace_seconds=submission_server.GRACE_SECONDS)
    (line,) = [line for line in lines.kept if line["event"] == "submission_certificate"]
    assert (line["level"], line["detail"][:33]) == ("warning", "the old certificate stays in use:")


async def test_a_stranger_has_a_limited_time_to_log_in(
    ctx: context.Context, lines: app_server.CapturedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "LOGIN_SECONDS", 0)
    certificate = certificates.load(ctx.settings)
    listener = listeners.listeners(ctx, name=NAME, certificate=certificate, log=lines.logger())["listen"]
    await listener.start(HOST, 0)
    try:
        reader, writer = await asyncio.open_connection(*listener.address)
        async with asyncio.timeout(TIMEOUT_SECONDS):
            said = await reader.read()
        writer.close()
        await writer.wait_closed()
    finally:
        await listener.stop(grace_seconds=submission_server.GRACE_SECONDS)
    assert b"421 4.4.2 Authentication timeout" in said


async def _is_trusted(where: tuple[str, int], authority: trustme.CA) -> bool:
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(trusting)
    try:
        reader, writer = await asyncio.open_connection(*where, ssl=trusting)
    except ssl.SSLCertVerificationError:
        return False
    # To the end, so that nothing comes after the farewell of TLS.
    writer.write(b"QUIT\r\n")
    await reader.read()
    writer.close()
    await writer.wait_closed()
    return True


async def test_one_connection_too_many_is_refused_temporarily(
    settings: config.Settings, clock: Clock, server: SubmissionServer
) -> None:
    async with listening_with(changed(settings, connections=1), clock) as addresses:
        host, port = addresses["listen"]
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=TIMEOUT_SECONDS) as client:
            await client.login(*server.login)
            with pytest.raises(aiosmtplib.SMTPConnectResponseError) as refused:
                await aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=TIMEOUT_SECONDS).connect()
    assert refused.value.code == 421


async def test_a_stop_lets_idle_sessions_go_and_finishes_what_is_under_way(
    ctx: context.Context, server: SubmissionServer, lines: app_server.CapturedLog
) -> None:
    certificate = certificates.load(ctx.settings)
    listener = listeners.listeners(ctx, name=NAME, certificate=certificate, log=lines.logger())["listen"]
    await listener.start(HOST, 0)
    host, port = listener.address
    idle = aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=TIMEOUT_SECONDS)
    busy = aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=TIMEOUT_SECONDS)
    async with contextlib.AsyncExitStack() as stack:
        for client in (idle, busy):
            await stack.enter_async_context(client)
            await client.login(*server.login)
        await busy.mail(SENDER)
        stopping = asyncio.create_task(listener.stop(grace_seconds=TIMEOUT_SECONDS))
        # What has arrived before the stop is still answered, so send only once the session has ended.
        while idle.is_connected:
            await asyncio.sleep(0.01)
        with pytest.raises(aiosmtplib.SMTPException):
            await send(idle)
        await busy.rcpt(ADA)
        reply = await busy.data(MESSAGE)
        assert reply.code == 250
        await stopping
    (stored,) = await server.stored()
    assert stored.message.id in reply.message
