"""A copy of all tables of SQLite in PostgreSQL: none is forgotten, and no difference between them is missed."""

import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from postroad.storage.engine import backup_files, migrations, open_store, postgres, sqlite, sqlite_backup, table_copy
from tests.contexts import concrete
from tests.storage import samples

# Everything that a column may contain, and what could be mistaken for it.
TEXTS = ["", "-", "1:a", "Grüße, 日本 😀", "a,b", "'quoted' \\ and\nmore"]
BLOBS = [b"", b"-", bytes(range(256)), b"\\x00"]


@pytest.fixture
async def target(clean_postgres_url: str) -> AsyncIterator[postgres.PostgresStore]:
    opened = await open_store.open_store(clean_postgres_url, connections=2)
    yield concrete(opened, postgres.PostgresStore)
    await opened.close()


@pytest.fixture
def file(clean_sqlite_url: str) -> Path:
    return open_store.sqlite_path(clean_sqlite_url)


async def fill(file: Path) -> None:
    store = await open_store.open_store(f"sqlite:///{file}")
    async with store.transaction() as tx:
        await samples.add_account(tx)
        views = [("acc_1", f"view_{number}", text, text, number) for number, text in enumerate(TEXTS)]
        await tx.add_rows("saved_views", ("account_id", "id", "name", "search", "created_at"), views)
        bodies = [("acc_1", f"em_{number}", blob) for number, blob in enumerate(BLOBS)]
        await tx.add_rows("bodies", ("account_id", "message_id", "mime"), bodies)
        await tx.add_rows(
            "holds", ("account_id", "domain", "reason", "held_at", "released_at"), [("", "", "", -1, None)]
        )
    await store.close()


async def test_both_engines_have_the_same_tables_and_each_is_copied(file: Path, target: postgres.PostgresStore) -> None:
    created = {
        name
        for migration in migrations.known("sqlite")
        for name in re.findall(r"^CREATE TABLE (\w+)", migration.script, re.MULTILINE)
    }
    store = await open_store.open_store(f"sqlite:///{file}")
    async with store.reading() as tx, target.reading() as other:
        found = await table_copy.tables(tx)
        assert await table_copy.tables(other) == found
        assert found.keys() == created
        assert {column.type for columns in found.values() for column in columns} == {"TEXT", "INTEGER", "BLOB"}
    await store.close()


async def test_every_value_is_copied_and_both_sides_summarize_it_alike(
    file: Path, target: postgres.PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_copy, "MAX_ROWS", 4)
    await fill(file)
    told: list[int] = []
    copied: Mapping[str, table_copy.Summary] = {}
    with sqlite_backup.locked(file) as connection:
        tables = await table_copy.tables(sqlite.SqliteTransaction(connection, sqlite.load_statements()))
        total = sum(sqlite_backup.count(connection, table) for table in tables)
        for _ in range(2):  # what is there is replaced
            async with target.long_transaction() as tx:
                copied = await table_copy.replace(connection, tx, tables, progress=told.append)
                assert await table_copy.summarize_target(tx, tables) == copied
        assert table_copy.summarize_source(connection, tables) == copied
    assert sum(summary.rows for summary in copied.values()) == total == told[-1]
    assert told[:3] == sorted(set(told[:3]))
    async with target.reading() as tx:
        rows = await tx.fetch_composed("SELECT name, search FROM saved_views ORDER BY created_at")
        assert [tuple(row) for row in rows] == [(text, text) for text in TEXTS]
        rows = await tx.fetch_composed("SELECT mime FROM bodies ORDER BY message_id")
        assert [row[0] for row in rows] == BLOBS


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM saved_views WHERE name = '-'",
        "UPDATE saved_views SET name = name || ' ' WHERE id = 'view_3'",
        "UPDATE saved_views SET search = 'x' WHERE name = ''",
        "UPDATE bodies SET mime = substr(mime, 1, 255) WHERE length(mime) = 256",
        "UPDATE holds SET released_at = 0",
        "UPDATE accounts SET id = 'acc_2'",
    ],
)
async def test_any_other_row_shows(file: Path, target: postgres.PostgresStore, change: str) -> None:
    await fill(file)
    with sqlite_backup.locked(file) as connection:
        tables = await table_copy.tables(sqlite.SqliteTransaction(connection, sqlite.load_statements()))
        async with target.long_transaction() as tx:
            copied = await table_copy.replace(connection, tx, tables, progress=lambda _: None)
            await tx.run_script(change)
            stored = await table_copy.summarize_target(tx, tables)
    (different,) = [table for table in tables if stored[table] != copied[table]]
    assert different in change


async def test_a_table_that_is_not_there_is_named(file: Path, target: postgres.PostgresStore) -> None:
    with sqlite_backup.locked(file) as connection:
        connection.execute("CREATE TABLE later (id TEXT NOT NULL PRIMARY KEY) STRICT")
        tables = await table_copy.tables(sqlite.SqliteTransaction(connection, sqlite.load_statements()))
        async with target.reading() as tx:
            with pytest.raises(backup_files.BackupError, match=r"^the tables of the two databases differ: later$"):
                await table_copy.check_tables(tables, tx)
