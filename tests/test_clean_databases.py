"""Databases that are used again hold nothing of the test before, and one that was changed is not used again."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.storage.engine import open_store
from postroad.storage.people import accounts
from tests.clean_databases import CleanDatabases, CleanFile
from tests.postgres_server import PostgresServer

INSERT_ACCOUNT = (
    "INSERT INTO accounts (id, name, status, available, reserved, created_at) "
    "VALUES ('acc_1', 'Shop', 'active', 1, 0, 1)"
)
ACCOUNT = INSERT_ACCOUNT + "; UPDATE access_version SET version = 7"  # noqa: S608 - texts of ours


@pytest.fixture
def databases(postgres_server: PostgresServer) -> Iterator[CleanDatabases]:
    with contextlib.closing(CleanDatabases(postgres_server)) as made:
        yield made


def test_one_that_was_written_to_is_emptied_and_used_again(
    postgres_server: PostgresServer, databases: CleanDatabases
) -> None:
    url = databases.take()
    postgres_server.execute(ACCOUNT, url=url)
    databases.give_back(url)
    assert databases.take() == url
    assert postgres_server.execute("SELECT COUNT(*) FROM accounts", url=url) == "0"
    assert postgres_server.execute("SELECT * FROM access_version", url=url) == "1|0"
    assert databases.take() != url


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE accounts ADD COLUMN more INT",
        "ALTER TABLE accounts DROP CONSTRAINT accounts_available_check",
        "DROP INDEX users_by_account",
        "CREATE FUNCTION one() RETURNS INT LANGUAGE SQL AS 'SELECT 1'",
        "DELETE FROM schema_migrations WHERE version = 1",
        INSERT_ACCOUNT + "; ANALYZE accounts",
    ],
)
def test_one_that_was_changed_is_not_used_again(
    postgres_server: PostgresServer, databases: CleanDatabases, change: str
) -> None:
    url = databases.take()
    postgres_server.execute(change, url=url)
    databases.give_back(url)
    assert databases.take() != url


def test_one_that_nobody_wrote_to_is_used_again(databases: CleanDatabases) -> None:
    url = databases.take()
    for _ in range(2):
        databases.give_back(url)
        assert databases.take() == url


def test_whoever_is_still_connected_is_cut_off(postgres_server: PostgresServer, databases: CleanDatabases) -> None:
    url = databases.take()
    late = postgres_server.administrator(url)
    late.execute("BEGIN; " + ACCOUNT + ";")
    databases.give_back(url)
    with pytest.raises(RuntimeError, match="terminating connection"):
        late.execute("COMMIT;")
    late.close()
    assert databases.take() == url
    assert postgres_server.execute("SELECT COUNT(*) FROM accounts", url=url) == "0"


def test_one_whose_administrator_was_cut_off_is_not_used_again(
    postgres_server: PostgresServer, databases: CleanDatabases
) -> None:
    url = databases.take()
    postgres_server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        url=url,
    )
    databases.give_back(url)
    assert databases.take() != url


async def test_files_are_apart_and_have_the_current_schema(tmp_path: Path) -> None:
    file = CleanFile(tmp_path)
    for name in ("one", "other"):
        folder = tmp_path / name
        folder.mkdir()
        store = await open_store.open_current(file.copy_to(folder), migrate=False)
        async with store.transaction() as tx:
            await accounts.insert(tx, "acc_1", name="Shop", now=1)
        await store.close()
