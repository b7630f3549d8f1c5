"""Databases that are used again hold nothing of the test before, and one that was changed is not used again."""

import pytest

from tests.clean_databases import CleanDatabases
from tests.postgres_server import PostgresServer

ACCOUNT = (
    "INSERT INTO accounts VALUES ('acc_1', 'Shop', 'active', NULL, 1, 0, 1); UPDATE access_version SET version = 7"
)


def test_one_that_was_written_to_is_emptied_and_used_again(postgres_server: PostgresServer) -> None:
    databases = CleanDatabases(postgres_server)
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
        "INSERT INTO accounts VALUES ('acc_1', 'Shop', 'active', NULL, 1, 0, 1); ANALYZE accounts",
    ],
)
def test_one_that_was_changed_is_not_used_again(postgres_server: PostgresServer, change: str) -> None:
    databases = CleanDatabases(postgres_server)
    url = databases.take()
    postgres_server.execute(change, url=url)
    databases.give_back(url)
    assert databases.take() != url
