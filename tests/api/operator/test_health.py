"""`/v1/operator/health` and `/v1/operator/checks`."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from postroad import context
from postroad.services.operations.checks import findings, table
from postroad.storage.operations import processes
from tests import contexts
from tests.api.operator.conftest import Operator
from tests.services.operations.checks import setups


async def test_processes_store_and_certificates_are_shown(
    ctx: context.Context, clock: contexts.Clock, operator: Operator, tmp_path: Path
) -> None:
    files, _ = setups.certificate(tmp_path, "mail.example.com", days=80)
    sections: dict[str, dict[str, Any]] = {
        "http": {"tls": False},
        "inbound": {"listen": "127.0.0.1:25"},
        "tls": files,
    }
    for section, values in sections.items():
        changed = msgspec.structs.replace(getattr(ctx.settings, section), **values)
        msgspec.structs.force_setattr(ctx.settings, section, changed)
    async with ctx.store.transaction() as tx:
        now = ctx.clock()
        for name, seen in (("mail1-7", now), ("mail2-8", now - 120_000_000), ("old-9", now - 7200_000_000)):
            host, _, number = name.partition("-")
            one = processes.Process(
                name, host, int(number), ("api", "delivery"), "1.2.3", seen - 1, seen, '{"accepted":2.5}'
            )
            await processes.put(tx, one)
    answer = (await operator.http.get("/v1/operator/health")).json()
    assert [(one["name"], one["alive"], one["roles"], one["version"]) for one in answer["processes"]] == [
        ("mail2-8", False, ["api", "delivery"], "1.2.3"),
        ("mail1-7", True, ["api", "delivery"], "1.2.3"),
    ]
    assert answer["processes"][1]["rates"] == {"accepted": 2.5}
    assert answer["store"]["engine"] == ctx.store.dialect
    assert answer["store"]["bytes"] > 0
    assert (answer["store"]["disk_free_bytes"] is None) == (ctx.store.dialect == "postgres")
    assert answer["certificates"] == [
        {
            "listener": "inbound",
            "source": "file",
            "names": ["mail.example.com"],
            "expires_at": "2027-04-05T08:00:00.000Z",
            "problem": "",
        }
    ]


async def test_the_checks_run_once_for_a_minute(
    operator: Operator, clock: contexts.Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = 0

    async def check(_given: object) -> list[findings.Finding]:
        nonlocal runs
        runs += 1
        return [findings.ok("good"), findings.warning("bad", "do this")]

    monkeypatch.setattr(table, "CHECKS", {"disk": table.Check(check)})
    answer: dict[str, Any] = {}
    for expected in (1, 1, 2):
        answer = (await operator.http.get("/v1/operator/checks")).json()
        assert (runs, answer["state"]) == (expected, "warning")
        clock.pass_seconds(31)
    assert answer["findings"][1] == {
        "name": "disk",
        "state": "warning",
        "found": "bad",
        "advice": "do this",
        "documentation": "http://127.0.0.1:8025/docs/doctor.md#disk",
    }
