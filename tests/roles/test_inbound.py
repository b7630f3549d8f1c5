"""The role inbound: it listens at the configured address, or logs that it is disabled."""

import asyncio
from pathlib import Path

import aiosmtplib
import pytest

from postroad import config, roles
from tests.api import app_server
from tests.roles.test_submission import certificate
from tests.roles.test_supervisor import SECRET_KEY, events, run, with_role


def settings(folder: Path, **inbound: object) -> config.Settings:
    overrides: dict[str, dict[str, object]] = {
        "database": {"url": f"sqlite:///{folder}/postroad.db"},
        "security": {"secret_key": SECRET_KEY},
        "delivery": {"hostname": "mx.example.com"},
        "inbound": inbound,
    }
    return config.load(environment={}, overrides=overrides)


async def test_it_listens_where_it_is_configured_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = app_server.CapturedLog()
    announced: list[roles.Addresses] = []
    greetings: list[str] = []

    async def work(role_context: roles.RoleContext) -> None:
        host, port = announced[0]["inbound"]
        async with aiosmtplib.SMTP(hostname=host, port=port, start_tls=False) as client:
            greetings.append((await client.ehlo()).message)
        role_context.stopping.set()

    with_role(monkeypatch, work)
    await run(settings(tmp_path, listen="127.0.0.1:0"), ["inbound", "test"], lines, announce=announced.append)
    assert len(greetings) == 1
    assert "inbound_disabled" not in events(lines)
    assert [line["level"] for line in lines.kept if line["event"] == "operator_not_configured"] == ["warning"]
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*announced[0]["inbound"])


async def test_without_an_address_it_rests_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = app_server.CapturedLog()
    announced: list[roles.Addresses] = []

    async def work(role_context: roles.RoleContext) -> None:
        while "inbound_disabled" not in events(lines):
            await asyncio.sleep(0)
        role_context.stopping.set()

    with_role(monkeypatch, work)
    await run(settings(tmp_path), ["inbound", "test"], lines, announce=announced.append)
    assert announced == [{}]
    assert events(lines)[-1] == "stopped"


async def test_with_a_certificate_it_offers_starttls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    announced: list[roles.Addresses] = []
    greetings: list[str] = []

    async def work(role_context: roles.RoleContext) -> None:
        host, port = announced[0]["inbound"]
        client = aiosmtplib.SMTP(hostname=host, port=port, start_tls=True, validate_certs=False, timeout=600)
        async with client:
            greetings.append((await client.ehlo()).message)
        role_context.stopping.set()

    with_role(monkeypatch, work)
    chosen = settings(tmp_path, listen="127.0.0.1:0", **certificate(tmp_path))
    await run(chosen, ["inbound", "test"], app_server.CapturedLog(), announce=announced.append)
    assert greetings[0].startswith("mx.example.com")


async def test_a_certificate_that_cannot_be_used_is_reported(tmp_path: Path) -> None:
    chosen = settings(tmp_path, listen="127.0.0.1:0", tls_certificate="/nowhere.pem", tls_key="/nowhere.pem")
    with pytest.raises(roles.StartError, match=r"inbound\.tls_certificate: /nowhere\.pem cannot be read"):
        await run(chosen, ["inbound"], app_server.CapturedLog())


async def test_an_address_in_use_is_reported(tmp_path: Path) -> None:
    taken = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    where = f"127.0.0.1:{taken.sockets[0].getsockname()[1]}"
    async with taken:
        with pytest.raises(roles.StartError, match=f"cannot listen on {where}: the address is in use"):
            await run(settings(tmp_path, listen=where), ["inbound"], app_server.CapturedLog())


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(config.ConfigError, match=r"inbound\.listen: 'nowhere'"):
        settings(tmp_path, listen="nowhere")
