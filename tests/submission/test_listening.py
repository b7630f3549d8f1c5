"""The listeners of the submission door: TLS from the start or later, a renewed certificate, limits, and the stop."""

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

from postroad import config
from postroad.model import limits
from postroad.network import server_tls
from postroad.services import context
from postroad.submission import listening
from tests.api import door
from tests.contexts import Clock
from tests.submission import opening
from tests.submission.opening import ADA, HOST, MESSAGE, NAME, PATIENCE_SECONDS, SENDER, Opened, send


def changed(settings: config.Settings, **submission: object) -> config.Settings:
    return msgspec.structs.replace(settings, submission=msgspec.structs.replace(settings.submission, **submission))


@contextlib.asynccontextmanager
async def listening_with(settings: config.Settings, clock: Clock) -> AsyncIterator[dict[str, tuple[str, int]]]:
    async with context.open_context(settings, clock=clock) as ctx, opening.opened(ctx, lines=door.Lines()) as addresses:
        yield dict(addresses)


async def test_a_client_begins_in_the_clear_and_goes_on_with_tls(opened: Opened) -> None:
    def work() -> None:
        with smtplib.SMTP(*opened.addresses["listen"], timeout=PATIENCE_SECONDS) as client:
            client.ehlo()
            assert client.has_extn("starttls")
            client.starttls(context=opened.trusting())
            client.ehlo()
            assert not client.has_extn("starttls")
            client.login(*opened.login)
            assert client.sendmail(SENDER, [ADA], MESSAGE) == {}

    await asyncio.to_thread(work)
    (stored,) = await opened.stored()
    assert b"with ESMTPSA" in stored.body


async def test_a_client_begins_with_tls(opened: Opened) -> None:
    def work() -> None:
        where, trusting = opened.addresses["tls_listen"], opened.trusting()
        with smtplib.SMTP_SSL(*where, context=trusting, timeout=PATIENCE_SECONDS) as client:
            client.login(*opened.login)
            assert not client.has_extn("starttls")
            assert client.sendmail(SENDER, [ADA], MESSAGE) == {}

    await asyncio.to_thread(work)
    (stored,) = await opened.stored()
    assert b"with ESMTPSA" in stored.body


async def test_passwords_are_not_taken_in_the_clear_unless_that_is_set(settings: config.Settings, clock: Clock) -> None:
    async with listening_with(changed(settings, auth_without_tls=False), clock) as addresses:
        host, port = addresses["listen"]
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=PATIENCE_SECONDS) as client:
            await client.ehlo()
            assert not client.supports_extension("auth")
            reply = await client.execute_command(b"AUTH", b"PLAIN", b"AGEAYg==")
            assert reply.code in {530, 538}
            with pytest.raises(aiosmtplib.SMTPSenderRefused) as refused:
                await client.mail(SENDER)
            assert refused.value.code == 530


async def test_the_door_says_what_it_takes(opened: Opened) -> None:
    async with opened.client(log_in=False) as client:
        offered = client.esmtp_extensions
        assert offered["size"] == str(listening.MESSAGE_OCTETS)
        assert limits.MIME_BYTES < listening.MESSAGE_OCTETS
        expected = {"pipelining", "8bitmime", "smtputf8", "chunking", "enhancedstatuscodes", "dsn", "starttls", "auth"}
        assert expected <= offered.keys()
        assert client.server_auth_methods == ["plain", "login"]
        assert client.last_ehlo_response is not None
        assert client.last_ehlo_response.message.startswith(NAME)


async def test_only_the_addresses_that_are_set_are_listened_to(settings: config.Settings, clock: Clock) -> None:
    async with listening_with(changed(settings, tls_listen=""), clock) as addresses:
        assert list(addresses) == ["listen"]
    async with listening_with(changed(settings, listen=""), clock) as addresses:
        assert list(addresses) == ["tls_listen"]


async def test_without_a_certificate_there_is_no_tls(settings: config.Settings, clock: Clock) -> None:
    plain = changed(settings, tls_listen="", tls_certificate="", tls_key="")
    async with listening_with(plain, clock) as addresses:
        host, port = addresses["listen"]
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=PATIENCE_SECONDS) as client:
            await client.ehlo()
            assert not client.supports_extension("starttls")
            assert client.supports_extension("auth")


def test_a_certificate_that_cannot_be_read_is_named(settings: config.Settings, tmp_path: Path) -> None:
    missing = changed(settings, tls_certificate=str(tmp_path / "nowhere.pem"))
    with pytest.raises(server_tls.CertificateError, match=r"nowhere\.pem"):
        listening.load_certificate(missing)


async def test_a_renewed_certificate_is_used_without_a_restart(
    ctx: context.Context, settings: config.Settings, tmp_path: Path, lines: door.Lines
) -> None:
    certificate = listening.load_certificate(settings)
    assert certificate is not None
    listener = listening.listeners(ctx, name=NAME, certificate=certificate, log=lines.logger())["tls_listen"]
    await listener.start(HOST, 0)
    renewed = trustme.CA()
    try:
        opening.issue(renewed, tmp_path)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await _is_trusted(listener.address, renewed):
                await asyncio.sleep(0.02)
    finally:
        await listener.stop(grace_seconds=opening.GRACE_SECONDS)
    told = [(line["told"], line["level"]) for line in lines.kept if line["event"] == "submission_certificate"]
    assert told[-1] == (f"the certificate in {settings.submission.tls_certificate} was read again", "info")


async def test_a_certificate_that_cannot_be_used_is_a_warning_and_the_old_one_stays(
    ctx: context.Context, certificate: opening.Files, lines: door.Lines, authority: trustme.CA
) -> None:
    loaded = listening.load_certificate(ctx.settings)
    listener = listening.listeners(ctx, name=NAME, certificate=loaded, log=lines.logger())["tls_listen"]
    await listener.start(HOST, 0)
    try:
        certificate.chain.write_bytes(b"")
        listener.every_sweep()
        assert await _is_trusted(listener.address, authority)
    finally:
        await listener.stop(grace_seconds=opening.GRACE_SECONDS)
    (line,) = [line for line in lines.kept if line["event"] == "submission_certificate"]
    assert (line["level"], line["told"][:33]) == ("warning", "the old certificate stays in use:")


async def test_a_stranger_has_a_limited_time_to_log_in(
    ctx: context.Context, lines: door.Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "LOGIN_SECONDS", 0)
    certificate = listening.load_certificate(ctx.settings)
    listener = listening.listeners(ctx, name=NAME, certificate=certificate, log=lines.logger())["listen"]
    await listener.start(HOST, 0)
    try:
        reader, writer = await asyncio.open_connection(*listener.address)
        async with asyncio.timeout(PATIENCE_SECONDS):
            said = await reader.read()
        writer.close()
        await writer.wait_closed()
    finally:
        await listener.stop(grace_seconds=opening.GRACE_SECONDS)
    assert b"421 4.4.2 nobody has logged in in time" in said


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


async def test_one_connection_too_many_is_told_to_come_back(settings: config.Settings, clock: Clock) -> None:
    async with listening_with(changed(settings, connections_per_address=1), clock) as addresses:
        host, port = addresses["listen"]
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=PATIENCE_SECONDS):
            with pytest.raises(aiosmtplib.SMTPConnectResponseError) as refused:
                await aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=PATIENCE_SECONDS).connect()
    assert refused.value.code == 421


async def test_a_stop_lets_idle_sessions_go_and_finishes_what_is_under_way(
    ctx: context.Context, opened: Opened, lines: door.Lines
) -> None:
    certificate = listening.load_certificate(ctx.settings)
    listener = listening.listeners(ctx, name=NAME, certificate=certificate, log=lines.logger())["listen"]
    await listener.start(HOST, 0)
    host, port = listener.address
    idle = aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=PATIENCE_SECONDS)
    busy = aiosmtplib.SMTP(hostname=host, port=port, start_tls=False, timeout=PATIENCE_SECONDS)
    async with contextlib.AsyncExitStack() as stack:
        for client in (idle, busy):
            await stack.enter_async_context(client)
            await client.login(*opened.login)
        await busy.mail(SENDER)
        stopping = asyncio.create_task(listener.stop(grace_seconds=PATIENCE_SECONDS))
        with pytest.raises(aiosmtplib.SMTPException):
            await send(idle)
        await busy.rcpt(ADA)
        reply = await busy.data(MESSAGE)
        assert reply.code == 250
        await stopping
    (stored,) = await opened.stored()
    assert stored.message.id in reply.message
