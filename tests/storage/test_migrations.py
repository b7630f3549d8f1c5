"""Migrations: forwards, once, under a lock; a schema that does not fit is refused."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from postroad.storage import (
    access_version,
    consistency,
    domains,
    ledger,
    messages,
    migrations,
    open_store,
    queue,
    recipients,
    retention,
    suppressions,
)
from postroad.storage.sqlite import SqliteStore
from postroad.storage.store import ConstraintViolated, Store
from tests.storage import samples, webhook_samples
from tests.storage.conftest import Reopen

OPEN = """
import asyncio, sys
from postroad.storage import opening
async def main():
    store = await opening.open_current(sys.argv[1], migrate=True)
    await store.close()
asyncio.run(main())
"""


@pytest.fixture
def database_url(new_database_url: str) -> str:
    return new_database_url


@pytest.fixture
async def empty(reopen: Reopen) -> Store:
    return await reopen()


Tables = Callable[[Store], Awaitable[set[str]]]


async def tables(store: Store) -> set[str]:
    statements = {
        "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table'",
        "postgres": "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'",
    }
    samples.teach(store, tables=statements[store.dialect])
    return {row[0] for row in await samples.scan(store, "test.tables")}


def add_migration(monkeypatch: pytest.MonkeyPatch, *scripts: str) -> None:
    """As if this version came with more of them."""
    known = migrations.known

    def more(dialect: str) -> list[migrations.Migration]:
        first = known(dialect)
        return first + [
            migrations.Migration(first[-1].version + number, f"test_{number}", script)
            for number, script in enumerate(scripts, start=1)
        ]

    monkeypatch.setattr(migrations, "known", more)


async def test_an_empty_database_gets_everything_once(empty: Store) -> None:
    known = migrations.known(empty.dialect)
    assert await migrations.apply(empty) == known
    await migrations.require_current(empty)
    async with empty.transaction() as tx:
        await access_version.bump(tx)
    assert await migrations.apply(empty) == []
    await migrations.require_current(empty)
    assert await samples.count(empty, "schema_migrations") == len(known)
    async with empty.reading() as tx:
        assert await access_version.version(tx) == 1


async def test_hosts_that_start_together_migrate_once(database_url: str, reopen: Reopen) -> None:
    stores = [await reopen() for _ in range(5)]
    applied = await asyncio.gather(*[migrations.apply(store) for store in stores])
    known = migrations.known(stores[0].dialect)
    assert sorted(applied) == [[], [], [], [], known]
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
    add_migration(monkeypatch, "CREATE TABLE more (x INTEGER); CREATE TABLE yet_more (x INTEGER);")
    with pytest.raises(migrations.SchemaError, match="run 'postroad migrate'"):
        await open_store.open_current(database_url, migrate=False)
    assert "more" not in await tables(store)
    migrated = await open_store.open_current(database_url, migrate=True)
    assert {"more", "yet_more"} <= await tables(migrated)
    await migrated.close()


@pytest.mark.parametrize("migrate", [True, False])
async def test_a_newer_schema_is_refused_and_left_as_it_is(database_url: str, store: Store, *, migrate: bool) -> None:
    async with store.transaction() as tx:
        await tx.execute("migrations.record", 999, "from_the_future")
    with pytest.raises(migrations.SchemaError, match=r"version 999.*newer Postroad"):
        await open_store.open_current(database_url, migrate=migrate)
    async with store.reading() as tx:
        assert await migrations._version(tx) == 999


async def test_a_migration_that_fails_leaves_nothing_of_itself_or_of_those_before_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await tables(store)
    add_migration(
        monkeypatch,
        "CREATE TABLE more (x INTEGER);",
        "CREATE TABLE yet_more (x INTEGER); INSERT INTO access_version VALUES (1, 1);",  # there is such a row
    )
    with pytest.raises(ConstraintViolated):
        await migrations.apply(store)
    assert await tables(store) == before
    async with store.transaction() as tx:
        await access_version.bump(tx)


async def test_a_database_without_webhooks_gets_them_and_keeps_what_it_has(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.known
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:2])
    await migrations.apply(empty)
    assert not {name for name in await tables(empty) if name.startswith("webhook")}
    recipient = samples.recipient("em_1")
    async with empty.transaction() as tx:
        await samples.add_account(tx, credits=10)
        await messages.insert(tx, [samples.message("em_1")])
        await recipients.insert(tx, [recipient])
        await queue.insert(tx, [recipient], {"em_1": 4}, now=samples.NOW)
        await ledger.record(tx, [ledger.Entry("led_1", "acc_1", "reserve", -1, 1, "em_1", None, samples.NOW)])
    counts = {name: await samples.count(empty, name) for name in await tables(empty) - {"schema_migrations"}}
    monkeypatch.setattr(migrations, "known", known)

    assert (await migrations.apply(empty))[0].name == "webhooks"
    assert {name: await samples.count(empty, name) for name in counts} == counts
    await webhook_samples.add(empty, webhook_samples.webhook(), webhook_samples.secret(), webhook_samples.delivery(1))
    assert len(await webhook_samples.claim(empty)) == 1
    async with empty.scanning() as tx:
        assert await consistency.findings(tx) == []


async def test_domains_that_were_verified_before_the_guards_need_no_warm_up(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.known
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:3])
    await migrations.apply(empty)
    async with empty.transaction() as tx:
        await tx.run_script("INSERT INTO domains VALUES ('dom_1', 'acc_1', 'old.example', 7, 1)")
        await tx.run_script("INSERT INTO domains VALUES ('dom_2', 'acc_1', 'new.example', NULL, 1)")
    monkeypatch.setattr(migrations, "known", known)
    await migrations.apply(empty)
    async with empty.reading() as tx:
        old, new = await domains.of_account(tx, "acc_1")
    assert (old.warm, old.verified_by) == (1, "operator")
    assert (new.warm, new.verified_by) == (0, None)


async def test_suppressions_and_ended_messages_come_through_the_guards(
    empty: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations.known
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:3])
    await migrations.apply(empty)
    async with empty.transaction() as tx:
        await tx.run_script("INSERT INTO suppressions VALUES ('acc_1', 'a@example.net', 'bounce', 'gone', 'em_1', 7)")
        await messages.insert(tx, [samples.message("em_1"), samples.message("em_2")])
        await tx.run_script("UPDATE messages SET status = 'failed', billing_status = 'released' WHERE id = 'em_1'")
    monkeypatch.setattr(migrations, "known", known)
    await migrations.apply(empty)
    two_days = 2 * 24 * 3600 * 1_000_000
    async with empty.transaction() as tx:
        (kept,) = await suppressions.of_account(tx, "acc_1", after="", limit=10)
        assert kept == suppressions.Suppression("acc_1", "a@example.net", "bounce", "gone", None, "em_1", 7)
        assert await retention.remove_bodies(tx, ended_before=samples.NOW + two_days - 1) == 0
        assert await retention.remove_bodies(tx, ended_before=samples.NOW + two_days) == 1
        assert await messages.body(tx, "acc_1", "em_2") is not None


@pytest.mark.parametrize(
    "query",
    ["messages.insert", "recipients.insert", "ledger.insert", "attempts.insert", "webhook_deliveries.insert"],
)
def test_what_every_message_writes_is_judged_without_a_table_for_each_rule(
    sqlite_store: SqliteStore, query: str
) -> None:
    statement = sqlite_store._statements[query]
    places = max(int(place) for place in re.findall(r"\?(\d+)", statement))
    steps = sqlite_store._writer.execute(f"EXPLAIN {statement}", (None,) * places).fetchall()
    assert "OpenEphemeral" not in [step[1] for step in steps]


@pytest.mark.parametrize(
    "change",
    [
        "messages SET source",
        "messages SET status",
        "messages SET billing_status",
        "recipients SET status",
        "recipients SET billing_status",
        "ledger SET kind",
    ],
)
async def test_the_rules_of_what_every_message_writes_still_hold(empty: Store, change: str) -> None:
    await migrations.apply(empty)
    async with empty.transaction() as tx:
        await samples.add_account(tx, credits=10)
        await messages.insert(tx, [samples.message("em_1")])
        await recipients.insert(tx, [samples.recipient("em_1")])
        await ledger.record(tx, [ledger.Entry("led_1", "acc_1", "reserve", -1, 1, "em_1", None, samples.NOW)])
    with pytest.raises(ConstraintViolated):
        async with empty.transaction() as tx:
            await tx.run_script(f"UPDATE {change} = 'another'")


def test_migrations_are_numbered_without_gaps_and_alike_on_both_engines() -> None:
    found = {dialect: migrations.known(dialect) for dialect in ("sqlite", "postgres")}
    names = {dialect: [(m.version, m.name) for m in known] for dialect, known in found.items()}
    assert names["sqlite"] == names["postgres"]
    assert [version for version, _ in names["sqlite"]] == list(range(1, len(names["sqlite"]) + 1))


def test_both_engines_have_the_same_tables_columns_and_rules() -> None:
    """Types, storage options, and kinds of index and the order of what they hold differ, and nothing else."""

    def normal(script: str) -> list[str]:
        text = re.sub(r"--.*", "", script)
        text = re.sub(r"ALTER TABLE \w+ ALTER COLUMN \w+ SET STORAGE \w+;", "", text)
        text = re.sub(r"DROP INDEX (\w+);\s*CREATE INDEX \1 ON \w+ \([^)]*\);", "", text)
        text = re.sub(r"\) (?:STRICT|WITH )[^;]*;", ");", text)
        text = re.sub(r"(?:PRAGMA writable_schema|UPDATE sqlite_schema)[^;]*;", "", text)
        for postgres, sqlite in ((" USING brin", ""), (' COLLATE "C"', ""), ("BIGINT", "INTEGER"), ("BYTEA", "BLOB")):
            text = text.replace(postgres, sqlite)
        return [" ".join(statement.split()) for statement in text.split(";") if statement.strip()]

    for sqlite, postgres in zip(migrations.known("sqlite"), migrations.known("postgres"), strict=True):
        assert normal(sqlite.script) == normal(postgres.script)
