"""A round of checks: gauges, log lines for what changed, and one process for the whole installation."""

from collections.abc import Sequence

import msgspec
import pytest

from postroad import context, errors
from postroad.mail import notice_kinds, notice_outbox
from postroad.network import hostname
from postroad.services.operations.checks import data, findings, monitor, table
from postroad.storage.operations import notices, processes, space
from tests.api import app_server


class Scripted:
    """A check that says what it is told to."""

    def __init__(self) -> None:
        self.findings: list[findings.Finding] = []

    async def run(self, _given: findings.Subject) -> Sequence[findings.Finding]:
        return self.findings


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    scripted, common = Scripted(), Scripted()
    common.findings = [findings.ok("all roles run")]
    checks = {"clock": table.Check(scripted.run), "roles": table.Check(common.run, table.Scope.INSTALLATION)}
    monkeypatch.setattr(table, "CHECKS", checks)
    return scripted


async def put(ctx: context.Context, name: str, *, started_at: int, roles: tuple[str, ...] = ("maintenance",)) -> None:
    async with ctx.store.transaction() as tx:
        await processes.put(tx, processes.Process(name, "mx", 7, roles, "0.1.0", started_at, ctx.clock()))


async def test_a_state_that_changes_is_exported_and_logged_once(ctx: context.Context, own: Scripted) -> None:
    lines = app_server.CapturedLog()
    checks = monitor.Monitor(ctx, lines.logger())
    rounds = [
        findings.ok("the clock is synchronized"),
        findings.warning("the clock is not synchronized", "run chrony"),
        findings.warning("the clock is not synchronized", "run chrony"),
        findings.error("the clock differs by 99 seconds", "run chrony"),
        findings.skipped("nobody knows"),
    ]
    gauges = []
    for one in rounds:
        own.findings = [one]
        await checks.run()
        gauges.append(dict(ctx.metrics.checks.values))
    assert gauges == [{("clock",): 0}, {("clock",): 1}, {("clock",): 1}, {("clock",): 2}, {}]
    page = "http://127.0.0.1:8025/docs/doctor.md#clock"
    assert [
        (line["level"], line["event"], line["check"], line["before"], line["state"], line["found"], line["advice"])
        for line in lines.kept
    ] == [
        ("warning", "check_changed", "clock", "ok", "warning", "the clock is not synchronized", "run chrony"),
        ("warning", "check_changed", "clock", "warning", "error", "the clock differs by 99 seconds", "run chrony"),
        ("info", "check_changed", "clock", "error", "skipped", "nobody knows", ""),
    ]
    assert {line["documentation"] for line in lines.kept} == {page}


async def test_operators_are_told_of_what_is_worse_than_before_once_for_a_host(
    ctx: context.Context, own: Scripted
) -> None:
    for _ in range(2):  # two processes of this host
        checks = monitor.Monitor(ctx, app_server.CapturedLog().logger())
        for one in (
            findings.warning("the clock is not synchronized", "run chrony"),
            findings.error("the clock differs by 99 seconds"),
            findings.warning("the clock is not synchronized", "run chrony"),
            findings.ok("fine"),
        ):
            own.findings = [one]
            await checks.run()
    async with ctx.store.reading() as tx:
        told = await notices.unresolved(tx, limit=9)
    host = hostname.short_name()
    common = {"check": "clock", "host": host, "page": "http://127.0.0.1:8025/docs/doctor.md#clock"}
    contents = {one.kind: msgspec.json.decode(one.content) for one in told}
    assert len(told) == 2
    assert contents == {
        notice_kinds.CHECK_WARNING: {**common, "found": "the clock is not synchronized", "advice": "run chrony"},
        notice_kinds.CHECK_FAILED: {**common, "found": "the clock differs by 99 seconds", "advice": ""},
    }


async def test_what_could_not_be_told_is_found_again(
    ctx: context.Context, own: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = app_server.CapturedLog()
    checks = monitor.Monitor(ctx, lines.logger())
    own.findings = [findings.error("the clock differs by 99 seconds")]

    async def refuse(*_: object, **__: object) -> None:
        raise errors.ServiceUnavailable("the database is read-only")

    with monkeypatch.context() as broken:
        broken.setattr(notice_outbox, "write", refuse)
        await checks.run()
    for _ in range(2):
        await checks.run()
    assert [line["event"] for line in lines.kept] == ["check_changed", "check_notice_failed", "check_changed"]
    async with ctx.store.reading() as tx:
        assert len(await notices.unresolved(tx, limit=9)) == 1


async def test_the_oldest_process_with_the_maintenance_role_checks_the_installation(
    ctx: context.Context, own: Scripted
) -> None:
    own.findings = [findings.ok("fine")]
    checks = monitor.Monitor(ctx, app_server.CapturedLog().logger())
    await put(ctx, "mx:1", started_at=1, roles=("api",))
    await put(ctx, hostname.process_name(), started_at=3)
    await put(ctx, "mx:9", started_at=4)
    await checks.run()
    assert ctx.metrics.checks.values == {("clock",): 0, ("roles",): 0}
    await put(ctx, "mx:2", started_at=2)
    await checks.run()
    assert ctx.metrics.checks.values == {("clock",): 0}


async def test_the_free_space_is_measured_with_every_round(ctx: context.Context, own: Scripted) -> None:
    own.findings = [findings.ok("fine")]
    await monitor.Monitor(ctx, app_server.CapturedLog().logger()).run()
    (folder,) = data.folders(ctx.settings)
    async with ctx.store.reading() as tx:
        assert await space.oldest_sample(tx, hostname.short_name(), folder, since=0)
