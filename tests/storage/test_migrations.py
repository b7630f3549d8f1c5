"""Migrations: forwards, once, under a lock; a schema that does not match is refused."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable

import pytest

from postroad.model import bounce_guard
from postroad.storage import (
    access_version,
    async_bounces,
    attempts,
    audit_log,
    bounce_guard_days,
    consistency,
    domains,
    hourly_counts,
    ledger,
    messages,
    migrations,
    open_store,
    provider_queues,
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
from postroad.storage import open_store
async def main():
    store = await open_store.open_current(sys.argv[1], migrate=True)
    await store.close()
asyncio.run(main())
"""

RENAMED = {"pools": "provider_queues", "late_bounces": "async_bounces"}
# Rows as older schemas have them: the code of today writes to today's columns only.
QUEUED = """
INSERT INTO queue (account_id, message_id, recipient_id, lane, email, email_key, size, attempt_count, lost_leases,
    ready, queued_at, due_at)
SELECT account_id, message_id, id, domain || ' ' || account_id, email, email_key, 4, 0, 0, 1, 1, 1 FROM recipients;
"""
BEFORE_THE_RENAMES = """
INSERT INTO attempts (account_id, message_id, recipient_id, started_at, duration, pool, host, address, tls, stage,
    verdict, fault, reason, smtp_code, enhanced_code, response, in_doubt)
SELECT account_id, message_id, id, 7, 5, 'google', 'mx.example.net', '192.0.2.1', '', 'content', 'retry', 'rate',
    'greylisted', 451, '4.7.1', 'later', 0 FROM recipients;
INSERT INTO pools (worker, name, state, reason, until, updated_at)
VALUES ('w1', 'google', 'paused', 'slow down', 9, 8);
INSERT INTO late_bounces (account_id, message_id, recipient_id, received_at, action, status, fault, response)
SELECT account_id, message_id, id, 7, 'failed', '5.1.1', 'address', '550 no' FROM recipients;
INSERT INTO sending_days (account_id, day, recipients, bounces, complaints) VALUES ('acc_1', 7, 3, 2, 1);
INSERT INTO traffic_hours (account_id, hour, provider, messages, recipients, delivered, bounced, failed, deferred)
VALUES ('acc_1', 7, 'google', 6, 5, 4, 3, 2, 1);
INSERT INTO journal (account_id, id, actor_kind, user_id, actor, action, subject, detail, request_id, client_address,
    created_at)
VALUES ('acc_1', 'jrn_1', 'operator', NULL, '', 'template.changed', 'receipt', '', '', '', 7);
INSERT INTO domains (id, account_id, name, created_at, asked_at) VALUES ('dom_1', 'acc_1', 'example.com', 1, 7);
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
    assert (await migrations.apply(empty)).migrations == known
    await migrations.require_current(empty)
    async with empty.transaction() as tx:
        await access_version.bump(tx)
    assert (await migrations.apply(empty)).migrations == []
    await migrations.require_current(empty)
    assert await samples.count(empty, "schema_migrations") == len(known)
    async with empty.reading() as tx:
        assert await access_version.version(tx) == 1


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
        await samples.add_old_account(tx, credits=10)
        await tx.run_script(samples.old_message(empty, "em_1"))
        await recipients.insert(tx, [recipient])
        await tx.run_script(QUEUED)
        await ledger.record(tx, [samples.reservation("em_1")])
    counts = {name: await samples.count(empty, name) for name in await tables(empty) - {"schema_migrations"}}
    monkeypatch.setattr(migrations, "known", known)

    assert (await migrations.apply(empty)).migrations[0].name == "webhooks"
    assert {name: await samples.count(empty, RENAMED.get(name, name)) for name in counts} == counts
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
        await tx.run_script(samples.old_message(empty, "em_1") + samples.old_message(empty, "em_2"))
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


async def test_rows_and_rules_come_through_the_renames(empty: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations.known
    monkeypatch.setattr(migrations, "known", lambda dialect: known(dialect)[:7])
    await migrations.apply(empty)
    async with empty.transaction() as tx:
        await samples.add_old_account(tx, credits=10)
        await tx.run_script(samples.old_message(empty, "em_1"))
        await recipients.insert(tx, [samples.recipient("em_1")])
        await ledger.record(tx, [samples.reservation("em_1")])
        await tx.run_script(QUEUED)
        await tx.run_script(BEFORE_THE_RENAMES)
    monkeypatch.setattr(migrations, "known", known)

    assert (await migrations.apply(empty)).migrations[0].name == "field_names"
    async with empty.scanning() as tx:
        assert await queue.queue_keys(tx, after="", limit=9) == ["example.org acc_1"]
        (attempt,) = await attempts.of_message(tx, "acc_1", "em_1")
        assert (attempt.duration, attempt.provider_queue, attempt.host) == (5, "google", "mx.example.net")
        assert await provider_queues.heard_since(tx, 0) == [
            provider_queues.Status("w1", "google", "paused", "slow down", 9, 8)
        ]
        assert await async_bounces.of_message(tx, "acc_1", "em_1") == [
            async_bounces.AsyncBounce("acc_1", "em_1", "rcp_em_1_0", 7, "failed", "5.1.1", "address", "550 no")
        ]
        assert await bounce_guard_days.sums(tx, ["acc_1"], after_day=0) == {"acc_1": bounce_guard.Counts(3, 2, 1)}
        assert await hourly_counts.since(tx, "acc_1", from_hour=0) == (6, 5, 4, 3, 2, 1)
        (entry,) = await audit_log.page(tx, "acc_1", before="jrn_2", limit=9)
        assert (entry.actor_kind, entry.action, entry.created_at) == ("operator", "template.changed", 7)
        assert await domains.check_requested_at(tx, "acc_1", "dom_1") == 7
        assert await consistency.findings(tx) == []
    for change in (
        "UPDATE provider_queues SET state = 'another'",
        "UPDATE audit_log SET actor_kind = 'another'",
        "UPDATE queue SET ready = 2",
        "UPDATE attempts SET verdict = 'another'",
        "INSERT INTO async_bounces SELECT * FROM async_bounces",
        "INSERT INTO bounce_guard_days SELECT * FROM bounce_guard_days",
        "INSERT INTO hourly_counts SELECT * FROM hourly_counts",
    ):
        with pytest.raises(ConstraintViolated):
            async with empty.transaction() as tx:
                await tx.run_script(change)


async def test_no_name_of_the_schema_is_from_before_the_renames(store: Store) -> None:
    statements = {
        "sqlite": "SELECT name || ' ' || COALESCE(sql, '') FROM sqlite_schema",
        "postgres": """
            SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
            UNION SELECT conname::text FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
            UNION SELECT attname::text FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
                WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'""",
    }
    samples.teach(store, names=statements[store.dialect])
    names = " ".join(row[0] for row in await samples.scan(store, "test.names"))
    assert "bounce_guard_days_over" in names
    assert re.findall(r"\blane\b|pool|late_bounces|sending_days|traffic|journal|asked_at", names) == []


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
        await tx.run_script(samples.old_message(empty, "em_1"))
        await recipients.insert(tx, [samples.recipient("em_1")])
        await ledger.record(tx, [samples.reservation("em_1")])
    with pytest.raises(ConstraintViolated):
        async with empty.transaction() as tx:
            await tx.run_script(f"UPDATE {change} = 'another'")


def test_migrations_are_numbered_without_gaps_and_alike_on_both_engines() -> None:
    found = {dialect: migrations.known(dialect) for dialect in ("sqlite", "postgres")}
    names = {dialect: [(m.version, m.name) for m in known] for dialect, known in found.items()}
    assert names["sqlite"] == names["postgres"]
    assert [version for version, _ in names["sqlite"]] == list(range(1, len(names["sqlite"]) + 1))


def test_both_engines_have_the_same_tables_columns_and_rules() -> None:
    """Types, storage, partitions, constraints changed later, and kinds, columns and renames of indexes may differ."""

    def normal(script: str) -> list[str]:
        text = re.sub(r"--.*", "", script)
        text = re.sub(r"(?:DO|CREATE FUNCTION)[^$;]*\$\$.*?\$\$;", "", text, flags=re.DOTALL)
        text = re.sub(r"ALTER TABLE \w+ ALTER COLUMN \w+ SET STORAGE \w+;", "", text)
        text = re.sub(r"DROP INDEX (\w+);\s*CREATE INDEX \1 ON \w+ \([^)]*\);", "", text)
        text = re.sub(r"DROP INDEX (\w+);\s*CREATE INDEX (\w+) ON \w+ \(\w+\);", r"ALTER INDEX \1 RENAME TO \2;", text)
        text = re.sub(r"ALTER TABLE \w+ (?:RENAME|DROP|ADD) CONSTRAINT [^;]*;", "", text)
        text = re.sub(r"\) (?:STRICT|WITH )[^;]*;", ");", text)
        text = re.sub(r"(?:PRAGMA writable_schema|UPDATE sqlite_schema)[^;]*;", "", text)
        for postgres, sqlite in ((" USING brin", ""), (' COLLATE "C"', ""), ("BIGINT", "INTEGER"), ("BYTEA", "BLOB")):
            text = text.replace(postgres, sqlite)
        return [" ".join(statement.split()) for statement in text.split(";") if statement.strip()]

    for sqlite, postgres in zip(migrations.known("sqlite"), migrations.known("postgres"), strict=True):
        assert normal(sqlite.script) == normal(postgres.script)
