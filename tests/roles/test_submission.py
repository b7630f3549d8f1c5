"""The role submission: it listens at the configured addresses, logs that it is disabled, or is not started."""

import asyncio
import contextlib
import socket
from pathlib import Path

import aiosmtplib
import pytest
import trustme

from postroad import config, roles
from tests.api import app_server
from tests.roles.test_supervisor import SECRET_KEY, events, run, with_role


def settings(folder: Path, **submission: object) -> config.Settings:
    overrides: dict[str, dict[str, object]] = {
        "database": {"url": f"sqlite:///{folder}/postroad.db"},
        "security": {"secret_key": SECRET_KEY},
        "delivery": {"hostname": "mail.example.com"},
        "submission": submission,
    }
    return config.load(environment={}, overrides=overrides)


def certificate(folder: Path) -> dict[str, object]:
    """The settings of a certificate of its own."""
    issued = trustme.CA().issue_cert("mail.example.com")
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    (folder / "chain.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return {"tls_certificate": str(folder / "chain.pem"), "tls_key": str(folder / "key.pem")}


async def test_it_listens_where_it_is_configured_and_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = app_server.CapturedLog()
    announced: list[roles.Addresses] = []
    greetings: list[str] = []

    async def work(role_context: roles.RoleContext) -> None:
        for name, use_tls in (("submission", False), ("submission_tls", True)):
            host, port = announced[0][name]
            client = aiosmtplib.SMTP(
                hostname=host, port=port, start_tls=False, use_tls=use_tls, validate_certs=False, timeout=60
            )
            async with client:
                greetings.append((await client.ehlo()).message)
        role_context.stopping.set()

    with_role(monkeypatch, work)
    chosen = settings(tmp_path, listen="127.0.0.1:0", tls_listen="127.0.0.1:0", **certificate(tmp_path))
    await run(chosen, ["submission", "test"], lines, announce=announced.append)
    assert [greeting.partition(" ")[0] for greeting in greetings] == ["mail.example.com", "mail.example.com"]
    assert "submission_disabled" not in events(lines)
    assert events(lines)[-1] == "stopped"
    for name in ("submission", "submission_tls"):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*announced[0][name])


async def test_without_an_address_it_rests_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = app_server.CapturedLog()
    announced: list[roles.Addresses] = []

    async def work(role_context: roles.RoleContext) -> None:
        while "submission_disabled" not in events(lines):
            await asyncio.sleep(0)
        role_context.stopping.set()

    with_role(monkeypatch, work)
    await run(settings(tmp_path), ["submission", "test"], lines, announce=announced.append)
    assert announced == [{}]
    assert events(lines).count("submission_disabled") == 1
    assert events(lines)[-1] == "stopped"


@pytest.mark.parametrize("key", ["listen", "tls_listen"])
async def test_an_address_in_use_is_reported_and_leaves_nobody_listening(tmp_path: Path, key: str) -> None:
    with contextlib.ExitStack() as stack:
        taken, free = (stack.enter_context(socket.socket()) for _ in range(2))
        for each in (taken, free):
            each.bind(("127.0.0.1", 0))
        taken.listen()
        where, other = (f"127.0.0.1:{each.getsockname()[1]}" for each in (taken, free))
        free.close()
        both = {"listen": other, "tls_listen": other, key: where}
        chosen = settings(tmp_path, **both, **certificate(tmp_path))
        with pytest.raises(roles.CannotListen, match=f"cannot listen on {where}: the address is in use") as refused:
            await run(chosen, ["submission"], app_server.CapturedLog())
        assert refused.value.setting == f"submission.{key}"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*other.split(":"))


async def test_a_certificate_that_cannot_be_used_is_reported_with_its_file_and_the_reason(tmp_path: Path) -> None:
    chosen = settings(tmp_path, listen="127.0.0.1:0", **certificate(tmp_path))
    (tmp_path / "chain.pem").write_text("nonsense")
    with pytest.raises(roles.StartError, match=r"submission\.tls_certificate: .*chain\.pem") as refused:
        await run(chosen, ["submission"], app_server.CapturedLog())
    assert not isinstance(refused.value, roles.CannotListen)
