"""Databases with the current schema and without rows, used by one test after the other.

To make one takes many times as long as to empty one, and there are more than a thousand tests that need one. All are
copies of one to which the migrations were applied, which takes longer still. A database of PostgreSQL that a test has
changed beyond its rows (columns, constraints, indexes, functions, statistics) is not used again. One of SQLite is a
file: each test gets a copy.
"""

import asyncio
import concurrent.futures
from pathlib import Path
from typing import Final

from postroad.storage.engine import open_store
from tests import open_resources
from tests.postgres_server import Administrator, PostgresServer

# Selects the statement that empties a database. A table without a file's first page has not been written to, and most
# have not. To delete a few rows takes a fifth of the time of a new file for a table and each of its indexes; the lock
# waits, as TRUNCATE would, for a transaction that is just ending. A table below ten pages looks to the planner like an
# empty one, so what was deleted changes no plan.
SMALL_BYTES: Final = 8 * 8192
SELECT_CLEANUP: Final = f"""
WITH used AS (
    SELECT quote_ident(relname) AS name, pg_table_size(oid) AS bytes FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'schema_migrations'
    AND pg_relation_size(oid) > 0
)
SELECT CASE WHEN max(bytes) > {SMALL_BYTES} THEN 'TRUNCATE ' || string_agg(name, ', ')
ELSE 'LOCK ' || string_agg(name, ', ') || ' IN SHARE ROW EXCLUSIVE MODE;' || string_agg('DELETE FROM ' || name, ';') END
FROM used HAVING count(*) > 0
"""  # noqa: S608 - a number of ours
# The row that a schema begins with.
INSERT_FIRST_ROW: Final = "INSERT INTO access_version VALUES (1, 0);"
# Any other connection belongs to the test that has ended.
CLEANUP_SCRIPT: Final = f"""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
{SELECT_CLEANUP} \\gexec
{INSERT_FIRST_ROW}
"""  # noqa: S608 - texts of ours
# How many rows of ours each catalog has and which transaction wrote the last of them: every change of a schema shows in
# one. The rows of PostgreSQL itself, thousands, have lower numbers, and the index on the number leaves them out.
CATALOGS: Final = {
    "pg_attribute": "attrelid",
    "pg_constraint": "oid",
    "pg_index": "indexrelid",
    "pg_proc": "oid",
    "pg_trigger": "oid",
    "pg_statistic": "starelid",
}
FIRST_OF_OURS: Final = 16_384
SCHEMA: Final = " UNION ALL ".join(
    f"SELECT '{catalog}', count(*), max(xmin::text::bigint) FROM {catalog} WHERE {number} >= {least}"  # noqa: S608 - names of ours
    for catalog, number, least in (
        *((catalog, number, FIRST_OF_OURS) for catalog, number in CATALOGS.items()),
        ("schema_migrations", "version", 0),
    )
)


class CleanDatabases:
    """The databases of one server. To be closed, because each keeps a connection."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._free: list[str] = []
        self._original: str | None = None
        self._made: dict[str, tuple[Administrator, str]] = {}

    def take(self) -> str:
        """The address of one."""
        return self._free.pop() if self._free else self._make()

    def give_back(self, url: str) -> None:
        """Empty it for the next test."""
        administrator, schema = self._made[url]
        if _empty(administrator) == schema:
            self._free.append(url)
        else:
            administrator.close()
            del self._made[url]
            self._server.drop_database(url)

    def close(self) -> None:
        """End the connections."""
        for administrator, _ in self._made.values():
            administrator.close()

    def _make(self) -> str:
        if self._original is None:
            self._original = self._server.create_database()
            _run_apart(self._original)
        url = self._server.create_database(like=self._original)
        with open_resources.shared():
            administrator = self._server.administrator(url)
        self._made[url] = administrator, administrator.execute(f"{SCHEMA};")
        return url


class CleanFile:
    """The file of one worker, of which each test gets a copy."""

    def __init__(self, folder: Path) -> None:
        original = folder / "postroad.db"
        _run_apart(f"sqlite:///{original}")
        self._content = original.read_bytes()

    def copy_to(self, folder: Path) -> str:
        """The address of a new copy."""
        path = folder / "postroad.db"
        path.write_bytes(self._content)
        return f"sqlite:///{path}"


def _empty(administrator: Administrator) -> str:
    """The schema after all rows are gone; nothing when the test has cut off the administrator as well."""
    try:
        administrator.execute(CLEANUP_SCRIPT)
        return administrator.execute(f"{SCHEMA};")
    except RuntimeError:
        return ""


def _run_apart(url: str) -> None:
    # In a thread, because the one of the test may have an event loop already.
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _migrate(url)).result()


async def _migrate(url: str) -> None:
    await (await open_store.open_current(url, migrate=True)).close()
