"""What the checks look at can be had in any state of the installation, and looking changes nothing."""

import re
from pathlib import Path

import pytest

from postroad import config, context
from postroad.network import hostname
from postroad.services.operations.checks import findings
from postroad.storage.engine import migrations, open_store
from postroad.storage.operations import processes
from tests import contexts, next_migration
from tests.services.operations.checks import setups


def settings(url: str) -> config.Settings:
    return contexts.load(url, delivery={"hostname": setups.NAME})


async def told(url: str) -> tuple[str, str]:
    async with findings.opened(settings(url)) as given:
        assert given.store is None
        assert not given.running
        return given.database.state.value, given.database.found


async def test_a_database_that_does_not_exist_is_not_created(tmp_path: Path) -> None:
    file = tmp_path / "postroad.db"
    assert await told(f"sqlite:///{file}") == (
        "error",
        f"the database cannot be used: {file}: No such file or directory",
    )
    assert not file.exists()


async def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "postroad.db"
    file.write_text("something else, and long enough to be looked at" * 100)
    state, found = await told(f"sqlite:///{file}")
    assert (state, found.partition(";")[0]) == ("error", "the database cannot be used: the database cannot be reached")


async def test_a_server_that_does_not_answer_is_an_error_without_its_password() -> None:
    state, found = await told("postgresql://postroad:hunter22@127.0.0.1:9/postroad")
    assert (state, found.partition(";")[0]) == ("error", "the database cannot be used: the database cannot be reached")
    assert "hunter22" not in found


async def test_an_older_schema_is_not_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, newest = f"sqlite:///{tmp_path / 'postroad.db'}", migrations.known("sqlite")[-1].version
    await (await open_store.open_current(url, migrate=True)).close()
    next_migration.add(monkeypatch, next_migration.NOTHING)
    for _ in range(2):
        assert await told(url) == (
            "error",
            f"the database schema is at version {newest}, but this version needs {newest + 1}: run 'postroad migrate'",
        )


async def test_processes_that_reported_lately_run_and_those_of_this_host_are_known_by_its_name(
    ctx: context.Context,
) -> None:
    now, here = ctx.clock(), hostname.short_name()
    async with ctx.store.transaction() as tx:
        for name, host, seen_at in (("a", here, now), ("b", "elsewhere", now), ("c", here, now - 91 * 1_000_000)):
            await processes.put(tx, processes.Process(name, host, 7, ("api",), "0.1.0", now, seen_at))
    given = await findings.of_context(ctx)
    assert [one.name for one in given.running] == ["a", "b"]
    assert [one.name for one in given.here] == ["a"]
    assert (given.runs_here("api"), given.runs_here("inbound")) == (True, False)
    assert given.database.found == "the database is reachable, and its schema matches this version"


async def test_a_server_that_refuses_the_login_is_an_error(clean_postgres_url: str) -> None:
    state, found = await told(re.sub(r"/test_\w+", "/nowhere", clean_postgres_url))
    assert state == "error"
    assert found.startswith("the database cannot be used: ")
    assert 'database "nowhere" does not exist' in found
