"""Certificates by ACME, from a real authority on loopback: ordered, validated, shared by hosts, and renewed."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest
import pytest_asyncio

from postroad import config, context
from postroad.roles import composition, service
from postroad.services.operations import certificates as acme_certificate
from postroad.storage.operations import certificates
from tests import contexts, pebble_server
from tests.api import app_server
from tests.browser import skip_report
from tests.roles.test_supervisor import TIMEOUT_SECONDS, events

NAME = "mail.postroad.test"
NAMES = f"{NAME},mx.postroad.test"


@pytest.fixture(scope="module")
def pebble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pebble_server.Pebble]:
    if not pebble_server.is_installed():
        skip_report.skip("tests of ACME", because="Pebble was not found", remedy=pebble_server.REMEDY)
    with pebble_server.running(tmp_path_factory.mktemp("pebble")) as running:
        yield running


@pytest.fixture
def lines() -> app_server.CapturedLog:
    return app_server.CapturedLog()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the store and at the order more often."""
    monkeypatch.setattr(acme_certificate, "WATCH_SECONDS", 0.02)
    monkeypatch.setattr(acme_certificate, "SPREAD_SECONDS", 2)
    monkeypatch.setattr(acme_certificate, "POLL_SECONDS", 0.02)


@pytest.fixture
def settings(clean_sqlite_url: str, pebble: pebble_server.Pebble) -> config.Settings:
    return contexts.load(
        clean_sqlite_url,
        http={"listen": f"127.0.0.1:{pebble.tls_port}", "redirect_listen": f"127.0.0.1:{pebble.http_port}"},
        submission={"tls_listen": "127.0.0.1:0"},
        inbound={"listen": "127.0.0.1:0"},
        delivery={"hostname": NAME},
        acme={
            "names": [NAME, "mx.postroad.test"],
            "email": "operator@postroad.test",
            "directory": pebble.directory,
            "ca_file": str(pebble.ca_file),
        },
    )


def with_acme(settings: config.Settings, **changes: object) -> config.Settings:
    return msgspec.structs.replace(settings, acme=msgspec.structs.replace(settings.acme, **changes))


@pytest_asyncio.fixture
async def ctx(settings: config.Settings) -> AsyncIterator[context.Context]:
    async with composition.open_context(settings) as opened:
        yield opened


def key(ctx: context.Context) -> certificates.Key:
    return certificates.Key(ctx.settings.acme.directory, NAMES)


async def stored(ctx: context.Context) -> certificates.StoredCertificate:
    async with ctx.store.reading() as tx:
        found = await certificates.find(tx, key(ctx))
    assert found is not None
    return found


async def serial_of(port: int) -> str:
    """The serial number of the certificate that a listener shows; empty if it shows none."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls, server_hostname=NAME)
    except OSError:
        return ""
    shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return (shown or b"").hex()


async def until(lines: app_server.CapturedLog, event: str, *, count: int = 1) -> None:
    async with asyncio.timeout(TIMEOUT_SECONDS):
        while events(lines).count(event) < count:
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def serving(settings: config.Settings, lines: app_server.CapturedLog, *roles: str) -> AsyncIterator[None]:
    """The service with these roles for the time of the block."""
    started = asyncio.Event()
    running = asyncio.create_task(service.run(settings, roles, log=lines.logger(), announce=lambda _: started.set()))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield
    finally:
        waiting.cancel()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


@pytest.mark.parametrize("challenge", ["http-01", "tls-alpn-01"])
async def test_a_certificate_is_obtained_used_by_all_listeners_and_renewed_without_a_restart(
    settings: config.Settings,
    ctx: context.Context,
    pebble: pebble_server.Pebble,
    lines: app_server.CapturedLog,
    challenge: str,
) -> None:
    redirect = settings.http.redirect_listen if challenge == "http-01" else ""
    http = msgspec.structs.replace(settings.http, redirect_listen=redirect)
    chosen = msgspec.structs.replace(settings, http=http)
    async with serving(chosen, lines, "api", "submission", "maintenance"):
        await until(lines, "certificate_loaded")
        first = await serial_of(pebble.tls_port)
        assert first
        renewed = (
            await acme_certificate.Renewer(ctx, lines.logger()).renew(is_forced=True)
            if challenge == "http-01"
            else None
        )
        if renewed is not None:
            assert renewed.error == ""
            await until(lines, "certificate_loaded", count=2)
            assert await serial_of(pebble.tls_port) not in {"", first}
    assert events(lines)[:2] == ["certificate_missing", "started"]
    row = await stored(ctx)
    assert row.error == ""
    assert row.due_at == row.expires_at - (row.expires_at - row.issued_at) // 3
    async with ctx.store.reading() as tx:
        assert await certificates.challenges(tx, challenge, now=0) == []
    assert b"PRIVATE KEY" not in row.private_key


async def test_a_name_that_cannot_be_validated_is_reported_and_not_tried_again_at_once(
    ctx: context.Context, lines: app_server.CapturedLog
) -> None:
    renewer = acme_certificate.Renewer(ctx, lines.logger())
    refused = await renewer.renew()
    assert refused is not None
    assert (
        f"{NAME} could not be validated: " in refused.error
        or "mx.postroad.test could not be validated: " in refused.error
    )
    (line,) = [line for line in lines.kept if line["event"] == "certificate_order_failed"]
    assert (line["level"], line["error"], line["attempt"]) == ("warning", refused.error, 1)
    row = await stored(ctx)
    assert (row.error, row.due_at, row.chain) == (refused.error, refused.due_at, "")
    assert row.due_at > ctx.clock() + 14 * 60 * 1_000_000
    assert await renewer.renew() is None
    async with ctx.store.reading() as tx:
        assert await certificates.challenges(tx, "http-01", now=0) == []


async def test_an_authority_that_is_down_leaves_the_old_certificate_in_use(
    settings: config.Settings, lines: app_server.CapturedLog
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        down = with_acme(settings, directory=f"https://127.0.0.1:{closed.getsockname()[1]}/dir")
        async with composition.open_context(down) as ctx:
            async with ctx.store.transaction() as tx:
                await certificates.claim(tx, key(ctx), due_by=0, now=0, until=0)
                await certificates.put(
                    tx, key(ctx), chain="old", private_key=b"old", issued_at=1, expires_at=2, due_at=ctx.clock()
                )
            failed = await acme_certificate.Renewer(ctx, lines.logger()).renew()
            row = await stored(ctx)
    assert failed is not None
    assert failed.error == f"{down.acme.directory} cannot be reached: ConnectionError"
    assert (row.chain, row.private_key, row.attempt_count, row.error) == ("old", b"old", 1, failed.error)


async def test_two_hosts_make_one_order_and_both_use_its_certificate(
    settings: config.Settings, ctx: context.Context, lines: app_server.CapturedLog
) -> None:
    async with serving(settings, lines, "api"), composition.open_context(settings) as other:
        hosts = [acme_certificate.AcmeCertificate(each, lines.logger()) for each in (ctx, other)]
        results = await asyncio.gather(
            *(acme_certificate.Renewer(each, lines.logger()).renew() for each in (ctx, other))
        )
        assert [result is None for result in results].count(True) == 1
        assert events(lines).count("certificate_issued") == 1
        for host in hosts:
            await host.load()
        assert [host.context is not None for host in hosts] == [True, True]


async def test_an_order_that_a_shutdown_interrupts_is_due_at_the_next_start(
    settings: config.Settings, lines: app_server.CapturedLog
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        waiting = with_acme(settings, directory=f"https://127.0.0.1:{silent.getsockname()[1]}/dir")
        async with composition.open_context(waiting) as ctx, asyncio.timeout(TIMEOUT_SECONDS):
            order = asyncio.create_task(acme_certificate.Renewer(ctx, lines.logger()).renew())
            connected, _ = await asyncio.to_thread(silent.accept)
            assert (await stored(ctx)).claimed_until > ctx.clock()
            order.cancel()
            await asyncio.wait([order])
            row = await stored(ctx)
            connected.close()
    assert order.cancelled()
    assert (row.claimed_until, row.due_at <= ctx.clock(), row.error) == (0, True, "")
