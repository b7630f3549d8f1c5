"""Settings are read again at run time: some apply at once, others are named, and an invalid file changes nothing."""

import asyncio
import os
import re
import signal
from pathlib import Path

import msgspec
import pytest

from postroad import config, context, errors, roles
from postroad.protocol.smtp import values
from postroad.roles import composition, supervisor
from postroad.services.accounts import account_registry as accounts
from postroad.services.operations import operator_mail
from postroad.storage.mail import queue_views
from tests import accepted_mail, contexts
from tests.api import app_server
from tests.roles.test_supervisor import run, with_role


def load(folder: Path, **sections: dict[str, object]) -> config.Settings:
    given: dict[str, dict[str, object]] = {
        "database": {"url": f"sqlite:///{folder}/postroad.db"},
        "security": {"installation_key": contexts.SECRET_KEY},
        "http": {"listen": "127.0.0.1:0", "drain_seconds": 0},
    }
    for name, chosen in sections.items():
        given[name] = {**given.get(name, {}), **chosen}
    return config.load(environment={}, overrides=given)


def read_again(ctx: context.Context, folder: Path, **sections: dict[str, object]) -> dict[str, object]:
    lines = app_server.CapturedLog()
    supervisor.reload(ctx, lambda: load(folder, **sections), log=lines.logger())
    (line,) = lines.kept
    return line


async def test_mail_to_postmaster_goes_to_the_operator_of_now(tmp_path: Path) -> None:
    before: dict[str, object] = {"email": "old@example.net", "from": "postmaster@example.com"}
    after: dict[str, object] = {**before, "email": "new@example.net"}
    async with composition.open_context(load(tmp_path, operator=before)) as ctx:
        account = await accounts.create(ctx, "Operator")
        await accepted_mail.allow_sending(ctx, account.id)
        for_operator = operator_mail.OperatorMail(ctx, host="mx.example.org")
        assert read_again(ctx, tmp_path, operator=after)["applied"] == ["operator.email"]
        report = values.MailTransaction("eve@example.org", ("abuse@mx.example.org",), (b"Subject: spam\r\n\r\n",))
        await for_operator.forward(report, client_address="192.0.2.1")
        async with ctx.store.reading() as tx:
            (queued,) = await queue_views.page(tx, queue_views.Filter(), state=None, limit=2)
        assert queued.email == "new@example.net"


async def test_limits_apply_to_the_next_message(tmp_path: Path) -> None:
    clock = contexts.Clock()
    async with composition.open_context(load(tmp_path), clock=clock) as ctx:
        account = await accounts.create(ctx, "Shop")
        await accepted_mail.allow_sending(ctx, account.id)
        await accepted_mail.accept(ctx, account.id)
        clock.pass_seconds(1)
        line = read_again(
            ctx,
            tmp_path,
            limits={"request_rate": 1, "request_burst": 1, "queued_recipients": 7},
            quotas={"domains": 1},
            warmup={"recipients_per_day": [50]},
        )
        assert line["applied"] == [
            "limits.request_rate",
            "limits.request_burst",
            "limits.queued_recipients",
            "quotas.domains",
            "warmup.recipients_per_day",
        ]
        assert line["needs_restart"] == []
        assert ctx.settings.limits.queued_recipients == 7
        assert ctx.settings.warmup.recipients_per_day == (50,)
        await accepted_mail.accept(ctx, account.id, key="first")
        with pytest.raises(errors.RateLimited, match="more than 1 sends per second"):
            await accepted_mail.accept(ctx, account.id, key="second")


async def test_what_needs_a_restart_is_named_and_stays_without_its_value(tmp_path: Path) -> None:
    async with composition.open_context(load(tmp_path)) as ctx:
        line = read_again(
            ctx, tmp_path, metrics={"token": "token-of-the-tests"}, http={"connections": 7}, quotas={"users": 3}
        )
        assert (line["event"], line["level"]) == ("settings_reloaded", "info")
        assert (line["applied"], line["needs_restart"]) == (["quotas.users"], ["http.connections", "metrics.token"])
        assert "token-of-the-tests" not in str(line)
        assert (ctx.settings.http.connections, ctx.settings.metrics.token) == (4096, "")


async def test_an_invalid_file_changes_nothing(tmp_path: Path) -> None:
    async with composition.open_context(load(tmp_path)) as ctx:
        before = msgspec.structs.replace(ctx.settings)
        line = read_again(ctx, tmp_path, limits={"request_rate": 0})
        assert (line["event"], line["level"]) == ("reload_failed", "error")
        assert str(line["detail"]).startswith("limits.request_rate: ")
        assert ctx.settings == before


async def test_a_signal_reads_the_settings_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = app_server.CapturedLog()

    async def work(role_context: roles.RoleContext) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        await role_context.reloaded.wait()
        assert role_context.context.settings.quotas.users == 3
        role_context.stopping.set()

    with_role(monkeypatch, work)
    again = load(tmp_path, quotas={"users": 3})
    async with asyncio.timeout(600):
        await run(load(tmp_path), ["test"], lines, load=lambda: again)
    assert "settings_reloaded" in [line["event"] for line in lines.kept]


def test_every_name_in_the_table_is_a_setting_and_documented() -> None:
    tables = config.defaults()
    page = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    table = page.split("| setting | takes effect with |")[1].split("\n\n")[0]
    assert set(re.findall(r"`\[?([\w.]+)\]?`", table)) == supervisor.RELOADED
    for name in supervisor.RELOADED:
        section, _, key = name.partition(".")
        assert section in tables
        assert not key or key in tables[section]
