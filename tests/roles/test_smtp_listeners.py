"""The roles submission and inbound: they listen at the configured addresses, or log that they are disabled."""

import asyncio
import contextlib
import socket
from pathlib import Path

import aiosmtplib
import pytest
import trustme

from postroad import config, roles
from tests import contexts
from tests.api import app_server
from tests.roles.test_supervisor import events, run, with_role

ROLES = ["submission", "inbound"]


def settings(folder: Path, role: str, *, tls: dict[str, object] | None = None, **values: object) -> config.Settings:
    delivery = {"hostname": "mail.example.com"}
    return contexts.load(f"sqlite:///{folder}/postroad.db", delivery=delivery, tls=tls or {}, **{role: values})


def certificate(folder: Path) -> dict[str, object]:
    """The settings of a certificate of its own."""
    issued = trustme.CA().issue_cert("mail.example.com")
    issued.private_key_pem.write_to_path(str(folder / "key.pem"))
    (folder / "chain.pem").write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    return {"certificate": str(folder / "chain.pem"), "key": str(folder / "key.pem")}


@pytest.mark.parametrize(
    "role, listen",
    [
        ("submission", {"submission": "listen", "submission_tls": "tls_listen"}),
        ("inbound", {"inbound": "listen"}),
    ],
)
async def test_it_listens_with_tls_where_it_is_configured_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, listen: dict[str, str]
) -> None:
    lines = app_server.CapturedLog()
    announced: list[roles.Addresses] = []
    greetings: list[str] = []

    async def work(role_context: roles.RoleContext) -> None:
        for name, setting in listen.items():
            host, port = announced[0][name]
            is_secure = setting == "tls_listen"
            client = aiosmtplib.SMTP(
                hostname=host, port=port, start_tls=not is_secure, use_tls=is_secure, validate_certs=False, timeout=600
            )
            async with client:
                greetings.append((await client.ehlo()).message)
        role_context.stopping.set()

    with_role(monkeypatch, work)
    chosen = settings(tmp_path, role, **dict.fromkeys(listen.values(), "127.0.0.1:0"), tls=certificate(tmp_path))
    await run(chosen, [role, "test"], lines, announce=announced.append)
    assert [greeting.split()[0] for greeting in greetings] == ["mail.example.com"] * len(listen)
    assert f"{role}_disabled" not in events(lines)
    assert events(lines)[-1] == "stopped"
    unanswered = [line["level"] for line in lines.kept if line["event"] == "operator_not_configured"]
    assert unanswered == (["warning"] if role == "inbound" else [])
    for name in listen:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*announced[0][name])


@pytest.mark.parametrize("role", ROLES)
async def test_without_an_address_it_rests_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str
) -> None:
    lines = app_server.CapturedLog()
    announced: list[roles.Addresses] = []

    async def work(role_context: roles.RoleContext) -> None:
        while f"{role}_disabled" not in events(lines):
            await asyncio.sleep(0)
        role_context.stopping.set()

    with_role(monkeypatch, work)
    await run(settings(tmp_path, role), [role, "test"], lines, announce=announced.append)
    assert announced == [{}]
    assert events(lines).count(f"{role}_disabled") == 1
    assert events(lines)[-1] == "stopped"


@pytest.mark.parametrize("role, key", [("submission", "listen"), ("submission", "tls_listen"), ("inbound", "listen")])
async def test_an_address_in_use_is_reported_and_leaves_nobody_listening(tmp_path: Path, role: str, key: str) -> None:
    with contextlib.ExitStack() as stack:
        taken, free = (stack.enter_context(socket.socket()) for _ in range(2))
        for each in (taken, free):
            each.bind(("127.0.0.1", 0))
        taken.listen()
        where, other = (f"127.0.0.1:{each.getsockname()[1]}" for each in (taken, free))
        free.close()
        listen = {"listen": other, "tls_listen": other} if role == "submission" else {}
        chosen = settings(tmp_path, role, **{**listen, key: where}, tls=certificate(tmp_path))
        with pytest.raises(roles.CannotListen, match=f"cannot listen on {where}: the address is in use") as refused:
            await run(chosen, [role], app_server.CapturedLog())
        assert refused.value.setting == f"{role}.{key}"
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*other.split(":"))


@pytest.mark.parametrize("role", [*ROLES, "http"])
async def test_a_certificate_that_cannot_be_used_is_reported_with_its_file_and_the_reason(
    tmp_path: Path, role: str
) -> None:
    chosen = settings(tmp_path, role, listen="127.0.0.1:0", tls=certificate(tmp_path))
    (tmp_path / "chain.pem").write_text("nonsense")
    with pytest.raises(roles.StartError, match=r"tls\.certificate: .*chain\.pem") as refused:
        await run(chosen, ["api" if role == "http" else role], app_server.CapturedLog())
    assert not isinstance(refused.value, roles.CannotListen)


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(config.ConfigError, match=r"inbound\.listen: 'nowhere'"):
        settings(tmp_path, "inbound", listen="nowhere")
