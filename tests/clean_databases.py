"""Databases with the current schema and without rows, used by one test after the other.

To make one takes several times as long as to empty one, and there are more than a thousand tests that need one. A
database that a test has changed beyond its rows (columns, constraints, indexes, functions, statistics) is not used
again.
"""

import asyncio
import concurrent.futures
from typing import Final

from postroad.storage import opening
from tests.postgres_server import PostgresServer

TABLES: Final = """
SELECT string_agg(quote_ident(relname), ', ') FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> 'schema_migrations'
"""
# Whoever is still connected is of the test that has ended. The access version is the row that a schema begins with.
EMPTY: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid();
TRUNCATE {tables};
INSERT INTO access_version VALUES (1, 0);
"""
SCHEMA: Final = """
SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (
    SELECT format('%s %s %s %s', relname, attname, atttypid, attnotnull) AS line
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND attnum > 0
    UNION ALL SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = 'public'::regnamespace
    UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
    UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal
    UNION ALL SELECT format('%s %s', relname, staattnum)
    FROM pg_statistic JOIN pg_class ON pg_class.oid = starelid WHERE relnamespace = 'public'::regnamespace
    UNION ALL SELECT version::text FROM schema_migrations) AS lines;
"""


class CleanDatabases:
    """The databases of one server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._free: list[str] = []
        self._tables = ""
        self._schema = ""

    def take(self) -> str:
        """The address of one."""
        return self._free.pop() if self._free else self._make()

    def give_back(self, url: str) -> None:
        """Empty it for the next test."""
        emptied = self._server.execute(EMPTY.format(tables=self._tables) + SCHEMA, url=url)
        if emptied.splitlines()[-1] == self._schema:
            self._free.append(url)
        else:
            self._server.drop_database(url)

    def _make(self) -> str:
        url = self._server.create_database()
        # In a thread, because the one of the test may have an event loop already.
        with concurrent.futures.ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, _migrate(url)).result()
        if not self._schema:
            self._tables = self._server.execute(TABLES, url=url)
            self._schema = self._server.execute(SCHEMA, url=url)
        return url


async def _migrate(url: str) -> None:
    await (await opening.open_current(url, migrate=True)).close()
