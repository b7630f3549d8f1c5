"""The checks run concurrently; one that hangs or fails is a finding and hides no other."""

import asyncio
from collections.abc import Sequence

import pytest

from postroad.services.operations.checks import findings, table
from tests.services.operations.checks import setups


async def hang(_given: findings.Subject) -> Sequence[findings.Finding]:
    await asyncio.Event().wait()
    raise AssertionError


async def fail(_given: findings.Subject) -> Sequence[findings.Finding]:
    raise ValueError("no such thing as postgresql://jo:secret@db")


async def succeed(_given: findings.Subject) -> Sequence[findings.Finding]:
    return [findings.ok("fine"), findings.warning("not so fine")]


async def test_a_check_that_hangs_or_fails_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "CHECK_SECONDS", 0.01)
    checks = {"hangs": table.Check(hang), "fails": table.Check(fail), "works": table.Check(succeed)}
    monkeypatch.setattr(table, "CHECKS", checks)
    results = await table.run(setups.given())
    assert {one.name: [(each.state.value, each.found) for each in one.findings] for one in results} == {
        "hangs": [("warning", "the check did not finish within 0 seconds")],
        "fails": [("warning", "the check failed: ValueError: no such thing as postgresql://[secret]@db")],
        "works": [("ok", "fine"), ("warning", "not so fine")],
    }
    assert [(one.state.value, one.page) for one in results][2] == (
        "warning",
        "http://127.0.0.1:8025/docs/doctor.md#works",
    )


async def test_the_checks_of_one_host_leave_out_those_of_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {"own": table.Check(succeed), "common": table.Check(fail, table.Scope.INSTALLATION)}
    monkeypatch.setattr(table, "CHECKS", checks)
    assert [one.name for one in await table.run(setups.given(), scopes=[table.Scope.HOST])] == ["own"]


def test_only_what_all_hosts_share_concerns_the_whole_installation() -> None:
    common = [name for name, check in table.CHECKS.items() if check.scope is table.Scope.INSTALLATION]
    assert common == ["roles", "partitions", "operators", "return_path"]
