"""Migrations: forwards, once, under a lock; a schema that does not match is refused."""

import asyncio
import re
import subprocess
import sys

import pytest

from postroad.storage.engine import migrations, open_store
from postroad.storage.engine.sqlite import SqliteStore
from postroad.storage.engine.store import ConstraintViolated, Store
from postroad.storage.mail import messages
from postroad.storage.people import accounts, credentials
from tests import next_migration
from tests.storage import samples
from tests.storage.conftest import Reopen

OPEN = """
import asyncio, sys
from postroad.storage.engine import open_store
async def main():
    store = await open_store.open_current(sys.argv[1], migrate=True)
    await store.close()
asyncio.run(main())
"""

# Indexes that begin with an address on PostgreSQL, and with the account on SQLite.
DIFFERENT_INDEXES = re.compile(r"(?<=INDEX messages_by_sender|NDEX recipients_by_email).*")
# As builds from before the first release left it, as far as a migration reads it: their migrations, or a baseline that
# was another one.
EARLIER_BUILDS = {
    "migrations": """
CREATE TABLE schema_migrations (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO schema_migrations VALUES (1, 'foundation'), (2, 'delivery'), (3, 'webhooks');
""",
    "baseline": """
CREATE TABLE schema_migrations (version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, compatible_from INTEGER);
INSERT INTO schema_migrations VALUES (1, 'baseline 0123456789abcdef', 1);
""",
}


@pytest.fixture
def database_url(new_database_url: str) -> str:
    return new_database_url


@pytest.fixture
async def empty(reopen: Reopen) -> Store:
    return await reopen()


async def tables(store: Store) -> set[str]:
    statements = {
        "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table'",
        "postgres": "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'",
    }
    samples.teach(store, tables=statements[store.dialect])
    return {row[0] for row in await samples.scan(store, "test.tables")}


async def record(store: Store, version: int, *, compatible_from: int) -> None:
    """As if a newer version had migrated the database."""
    async with store.transaction() as tx:
        await tx.execute("migrations.record", version, "from_the_future", compatible_from)


async def test_an_empty_database_gets_everything_once(empty: Store) -> None:
    known = migrations.known(empty.dialect)
    assert (await migrations.apply(empty)).migrations == known
    await migrations.require_current(empty)
    async with empty.transaction() as tx:
        await credentials.bump_access_version(tx)
    assert (await migrations.apply(empty)).migrations == []
    await migrations.require_current(empty)
    assert await samples.count(empty, "schema_migrations") == len(known)
    async with empty.reading() as tx:
        assert await credentials.access_version(tx) == 1


async def test_hosts_that_start_together_migrate_once(database_url: str, reopen: Reopen) -> None:
    stores = [await reopen() for _ in range(5)]
    applied = await asyncio.gather(*[migrations.apply(store) for store in stores])
    known = migrations.known(stores[0].dialect)
    assert sorted(one.migrations for one in applied) == [[], [], [], [], known]
    for store in stores:
        await migrations.require_current(store)


async def test_processes_that_start_together_migrate_once(database_url: str, empty: Store) -> None:
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", OPEN, database_url, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    endings = [(await process.communicate(), process.returncode) for process in processes]
    assert [code for _, code in endings] == [0, 0, 0], endings
    await migrations.require_current(empty)


async def test_an_empty_database_is_refused_without_leave_to_migrate_and_left_as_it_is(
    database_url: str, empty: Store
) -> None:
    with pytest.raises(migrations.SchemaError, match=r"version 0.*postroad migrate"):
        await open_store.open_current(database_url, migrate=False)
    assert await tables(empty) == set()


async def test_a_pending_migration_is_refused_without_leave_to_migrate(
    database_url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    next_migration.add(monkeypatch, "CREATE TABLE more (x INTEGER); CREATE TABLE yet_more (x INTEGER);")
    with pytest.raises(migrations.SchemaError, match="run 'postroad migrate'"):
        await open_store.open_current(database_url, migrate=False)
    assert "more" not in await tables(store)
    migrated = await open_store.open_current(database_url, migrate=True)
    assert {"more", "yet_more"} <= await tables(migrated)
    await migrated.close()


async def test_a_migration_that_fails_leaves_nothing_of_itself_or_of_those_before_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await tables(store)
    next_migration.add(
        monkeypatch,
        "CREATE TABLE more (x INTEGER);",
        "CREATE TABLE yet_more (x INTEGER); INSERT INTO access_version VALUES (1, 1);",  # there is such a row
    )
    with pytest.raises(ConstraintViolated):
        await migrations.apply(store)
    assert await tables(store) == before
    async with store.transaction() as tx:
        await credentials.bump_access_version(tx)


@pytest.mark.parametrize("migrate", [True, False])
async def test_a_newer_schema_that_is_compatible_is_opened(database_url: str, store: Store, *, migrate: bool) -> None:
    newest = migrations.known(store.dialect)[-1].version
    await record(store, newest + 1, compatible_from=newest)
    await (await open_store.open_current(database_url, migrate=migrate)).close()
    assert await migrations.state_of(store) == (newest + 1, [], False, None)


async def test_a_newer_schema_with_a_step_that_is_not_compatible_is_refused_and_left_as_it_is(
    database_url: str, store: Store
) -> None:
    newest = migrations.known(store.dialect)[-1].version
    await record(store, newest + 1, compatible_from=newest + 1)
    await record(store, newest + 2, compatible_from=newest)
    for migrate in (True, False):
        with pytest.raises(migrations.SchemaError) as refused:
            await open_store.open_current(database_url, migrate=migrate)
        assert str(refused.value) == (
            f"the database schema is at version {newest + 2} and does not work with this version, "
            f"which knows only {newest}: use a newer Postroad"
        )
    assert (await migrations.state_of(store)) == (newest + 2, [], True, None)


@pytest.mark.parametrize("build", EARLIER_BUILDS)
async def test_a_database_of_an_earlier_build_is_refused_with_what_to_do_and_left_as_it_is(
    database_url: str, empty: Store, build: str
) -> None:
    async with empty.transaction() as tx:
        await tx.run_script(EARLIER_BUILDS[build])
    refusal = (
        "the database was created by a build from before the first release, and cannot be migrated: "
        "set database.url to a new database, or keep using the build that created it"
    )
    for migrate in (True, False):
        with pytest.raises(migrations.SchemaError, match=refusal):
            await open_store.open_current(database_url, migrate=migrate)
    with pytest.raises(migrations.SchemaError, match=refusal):
        await migrations.state_of(empty)
    assert await tables(empty) == {"schema_migrations"}


def test_comments_and_spaces_of_a_migration_are_not_part_of_its_fingerprint() -> None:
    baseline, *_ = migrations.known("sqlite")
    commented = baseline._replace(script=f"-- another remark\n{baseline.script}\n\n")
    assert commented.fingerprint == baseline.fingerprint
    changed = baseline._replace(script=baseline.script.replace("CREATE TABLE accounts", "CREATE TABLE customers", 1))
    assert changed.fingerprint != baseline.fingerprint


@pytest.mark.parametrize(
    "query",
    ["messages.insert", "recipients.insert", "ledger.insert", "attempts.insert", "webhook_deliveries.insert"],
)
def test_what_every_message_writes_is_checked_without_a_table_for_each_rule(
    sqlite_store: SqliteStore, query: str
) -> None:
    statement = sqlite_store._statements[query]
    places = max(int(place) for place in re.findall(r"\?(\d+)", statement))
    steps = sqlite_store._writer.execute(f"EXPLAIN {statement}", (None,) * places).fetchall()
    assert "OpenEphemeral" not in [step[1] for step in steps]


async def test_the_rules_of_what_every_message_writes_hold(store: Store) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx, credits=10)
        await messages.insert(tx, [samples.message("em_1")])
        await messages.insert_recipients(tx, [samples.recipient("em_1")])
        await accounts.record_entries(tx, [samples.reservation("em_1")])
    states = ("source", "status", "billing_status")
    rules = {"messages": states, "recipients": states[1:], "ledger": ("kind",)}
    for change in (f"{table} SET {column}" for table, columns in rules.items() for column in columns):
        with pytest.raises(ConstraintViolated):
            async with store.transaction() as tx:
                await tx.run_script(f"UPDATE {change} = 'another'")


def test_migrations_are_numbered_without_gaps_and_alike_on_both_engines() -> None:
    sqlite, postgres = (
        [migration._replace(script="") for migration in migrations.known(dialect)] for dialect in ("sqlite", "postgres")
    )
    assert sqlite == postgres
    assert [migration.version for migration in sqlite] == list(range(1, len(sqlite) + 1))
    assert all(1 <= migration.compatible_from <= migration.version for migration in sqlite)


def test_both_engines_have_the_same_tables_columns_and_rules() -> None:
    """Types, storage, partitions, and kinds and columns of indexes may differ."""

    def normal(script: str) -> list[str]:
        text = re.sub(r"--.*", "", script)
        text = re.sub(r"(?:DO|CREATE FUNCTION)[^$;]*\$\$.*?\$\$;", "", text, flags=re.DOTALL)
        text = re.sub(r"ALTER TABLE \w+ ALTER COLUMN \w+ SET STORAGE \w+;", "", text)
        text = re.sub(r"CREATE TABLE \w+ PARTITION OF [^;]*;", "", text)
        text = re.sub(r"\) (?:STRICT|PARTITION BY)[^;]*;", ");", text)
        text = re.sub(r"(\w+) = '\w+'(?:\s+OR \1 = '\w+')+", one_of, text)
        for postgres, sqlite in ((" USING brin", ""), (' COLLATE "C"', ""), ("BIGINT", "INTEGER"), ("BYTEA", "BLOB")):
            text = text.replace(postgres, sqlite)
        statements = [" ".join(statement.split()) for statement in text.split(";") if statement.strip()]
        return [DIFFERENT_INDEXES.sub("", statement) for statement in statements]

    def one_of(rule: re.Match[str]) -> str:
        values = re.findall(r"'\w+'", rule[0])
        return f"{rule[1]} IN ({', '.join(values)})"

    for sqlite, postgres in zip(migrations.known("sqlite"), migrations.known("postgres"), strict=True):
        assert normal(sqlite.script) == normal(postgres.script)
