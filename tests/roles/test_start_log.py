"""What the log says about a start: which build runs, whether it migrated the schema, and that a disk is full."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from postroad import build_version, errors, roles
from postroad.storage.engine import migrations, open_store
from tests import contexts, next_migration
from tests.api import app_server
from tests.roles.test_supervisor import run, with_role


@pytest.fixture(params=["sqlite", "postgres"])
def old_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store in which there is nothing, not even a schema."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/postroad.db"
    return str(request.getfixturevalue("postgres_url"))


async def test_a_start_that_migrates_logs_the_schema_before_and_after_and_the_time(
    old_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stop(role_context: roles.RoleContext) -> None:
        role_context.stopping.set()

    async def start() -> list[dict[str, Any]]:
        lines = app_server.CapturedLog()
        await run(settings, ["test"], lines)
        return lines.kept

    with_role(monkeypatch, stop)
    settings = contexts.load(old_database_url)
    before = migrations.known("sqlite")[-1].version
    await (await open_store.open_current(old_database_url, migrate=True)).close()
    next_migration.add(monkeypatch, next_migration.NOTHING)
    migrated, started, *_ = await start()
    assert migrated.pop("seconds") >= 0
    assert {"event": "schema_migrated", "level": "info", "from": before, "to": before + 1}.items() <= migrated.items()
    assert (started["event"], started["version"]) == ("started", build_version.current())
    assert "schema_migrated" not in [line["event"] for line in await start()]


async def test_a_start_below_the_minimum_of_free_space_refuses_the_first_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    async def send(role_context: roles.RoleContext) -> None:
        try:
            role_context.context.queue_limit.check("acc_1", 1_000, is_test=False)
        except errors.ServiceUnavailable as refusal:
            refused.append(refusal.message)
        role_context.stopping.set()

    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: shutil._ntuple_diskusage(10**9, 10**9 - 10**7, 10**7))
    lines = app_server.CapturedLog()
    with_role(monkeypatch, send)
    await run(contexts.load(f"sqlite:///{tmp_path}/postroad.db", limits={"min_free_megabytes": 1024}), ["test"], lines)
    assert refused == ["the disk of this service is almost full; nothing was accepted"]
    told = [line["event"] for line in lines.kept]
    assert told.index("disk_full") < told.index("started")
