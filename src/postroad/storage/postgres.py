"""PostgreSQL: any number of hosts on one database.

A connection pool of asyncpg. Lists of rows are sent as one array for each column, so a batch is one statement whatever
its length, and changes of several tables are sent together (`postgres_writes`). Statements have timeouts, here and on
the server, so that a host that dies in a transaction does not keep its locks. A server that cannot be reached raises
`ServiceUnavailable`. A broken connection is replaced, so that the service recovers by itself; when one does not
respond, all connections are replaced.

No transaction depends on the session, so that PgBouncer may be between: settings are `SET LOCAL`, and advisory locks
end with their transactions. `postgres_connections` decides about prepared statements, and whether a lookup needs a
transaction.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import asyncpg

from postroad import errors
from postroad.concurrency import fair_semaphore
from postroad.storage import postgres_connections, postgres_errors, postgres_writes, queries, store

COMMAND_SECONDS = 10
SCAN_SECONDS = 60
# For a migration that rewrites a large table.
SCRIPT_SECONDS = 3600
CONNECT_SECONDS = postgres_connections.CONNECT_SECONDS
# How long a transaction may be idle before the server ends it: its host is gone, or leaked it.
IDLE_SECONDS = 30
CLOSE_SECONDS = 10

_BY_KEY = "".join(f"; SET LOCAL {name} = {value}" for name, value in postgres_connections.PLANS_BY_KEY.items())
_ANY_PLAN = "".join(f"; SET LOCAL {name} TO DEFAULT" for name in postgres_connections.PLANS_BY_KEY)
# Not as the database may have been set: a change that waits for a lock must see what was changed before it.
_BEGIN = f"BEGIN ISOLATION LEVEL READ COMMITTED{_BY_KEY}"
_BEGIN_LOOKUP = f"BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY{_BY_KEY}"
_BEGIN_READ_ONLY = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_BEGIN_SCAN = f"{_BEGIN_READ_ONLY}{_ANY_PLAN}"
_BEGIN_VIEW = f"{_BEGIN_READ_ONLY}{_BY_KEY}"


class PostgresTransaction:
    """Queries on one connection. A failed one aborts the transaction, even where the server has not noticed it."""

    def __init__(self, connection: Any, statements: Mapping[str, str], *, seconds: int) -> None:  # noqa: ANN401 - untyped library
        self.failed = False
        # Whether the server refused to write: it is no longer the primary.
        self.is_read_only = False
        self._connection = connection
        self._statements = statements
        self._seconds = seconds
        self._pending = postgres_writes.PendingWrites()

    async def begin(self, begin: str) -> None:
        """Begin and set the timeouts of the server in one round trip, which may wait for PgBouncer."""
        with self._guarded():
            await self._connection.execute(
                f"{begin}; SET LOCAL statement_timeout = {self._seconds * 1000}; "
                f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_SECONDS * 1000}",
                timeout=CONNECT_SECONDS,
            )

    async def commit(self) -> None:
        """Commit, unless a query has failed."""
        await self._send_pending()
        try:
            with self._guarded():
                status = await self._connection.execute("COMMIT", timeout=self._seconds)
        except (errors.ServiceUnavailable, errors.TemporaryFailure) as failure:
            # The answer was lost or late, so "nothing was accepted" might be wrong here.
            msg = "the database did not confirm in time whether this was accepted; try again with the same key"
            raise errors.ServiceUnavailable(msg, retry_after=failure.retry_after) from failure.__cause__
        if status != "COMMIT":  # the server rolled back an aborted transaction
            raise store.TransactionAborted

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        if self.failed:
            raise store.TransactionAborted
        try:
            with postgres_errors.translated():
                yield
        except BaseException as problem:
            self.failed = True
            self.is_read_only = isinstance(problem.__cause__, asyncpg.ReadOnlySQLTransactionError)
            # asyncpg does not expect that a connection is closed between two steps of a statement, such as at a stop.
            if isinstance(problem, AttributeError) and self._is_closed():
                raise postgres_errors.unreachable() from problem
            raise

    def _is_closed(self) -> bool:
        try:
            return bool(self._connection.is_closed())
        except asyncpg.InterfaceError:  # the pool has it back
            return True

    async def fetch(self, query: str, *arguments: object) -> list[store.Row]:
        return await self.fetch_composed(self._statements[query], *arguments)

    async def fetch_composed(self, statement: str, *arguments: object) -> list[store.Row]:
        await self._send_before(postgres_writes.tables_of(statement))
        with self._guarded():
            rows: list[store.Row] = await self._connection.fetch(statement, *arguments, timeout=self._seconds)
        return rows

    async def fetch_one(self, query: str, *arguments: object) -> store.Row | None:
        with self._guarded():
            statement = self._statements[query]
            await self._send_before(postgres_writes.tables_of(statement))
            row: store.Row | None = await self._connection.fetchrow(statement, *arguments, timeout=self._seconds)
        return row

    async def fetch_many(self, query: str, rows: Sequence[store.Row]) -> list[store.Row]:
        return await self.fetch(query, *_columns(rows)) if rows else []

    async def execute(self, query: str, *arguments: object) -> int:
        with self._guarded():
            statement = self._statements[query]
            await self._send_before(postgres_writes.tables_of(statement))
            status: str = await self._connection.execute(statement, *arguments, timeout=self._seconds)
        count = status.rpartition(" ")[2]
        return int(count) if count.isdigit() else 0

    async def execute_many(self, query: str, rows: Sequence[store.Row]) -> None:
        if rows:
            await self.execute(query, *_columns(rows))

    async def execute_later(self, query: str, rows: Sequence[store.Row]) -> None:
        if rows:
            with self._guarded():
                statement = self._statements[query]
                await self._send_before(postgres_writes.tables_of(statement))
                self._pending.add(statement, _columns(rows))

    async def add_rows(self, table: str, columns: Sequence[str], rows: Sequence[store.Row]) -> None:
        if rows:
            await self._send_before(frozenset({table}))
            with self._guarded():
                # COPY takes the server a third less work than an INSERT of arrays, for bodies of a few kilobytes.
                await self._connection.copy_records_to_table(
                    table, columns=columns, records=rows, timeout=self._seconds
                )

    async def run_script(self, script: str) -> None:
        await self._send_pending()
        with self._guarded():
            await self._connection.execute(f"SET LOCAL statement_timeout = 0;\n{script}", timeout=SCRIPT_SECONDS)

    async def _send_before(self, tables: frozenset[str]) -> None:
        """Send pending changes that a statement about these tables must see, or must come after."""
        if self._pending.concern(tables):
            await self._send_pending()

    async def _send_pending(self) -> None:
        if taken := self._pending.take():
            statement, arguments = taken
            with self._guarded():
                await self._connection.execute(statement, *arguments, timeout=self._seconds)


class PostgresStore:
    """A store on a PostgreSQL server."""

    dialect = "postgres"

    def __init__(self, pool: Any) -> None:  # noqa: ANN401 - untyped library
        self._pool = pool
        self._statements = queries.load(self.dialect)
        # Scans take long; half of the connections stay free for mail and lookups.
        self._scans = fair_semaphore.FairSemaphore(max(1, pool.get_max_size() // 2), alpha=store.SCAN_ALPHA)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[store.Transaction]:
        async with self._session(_BEGIN, seconds=COMMAND_SECONDS) as tx:
            yield tx
            await tx.commit()

    def leasing(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        return self.transaction()

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[store.Transaction]:
        async with self._session(_BEGIN_VIEW, seconds=COMMAND_SECONDS) as view:
            yield view

    @contextlib.asynccontextmanager
    async def looking_up(self) -> AsyncIterator[store.Transaction]:
        async with self._session(_BEGIN_LOOKUP, seconds=COMMAND_SECONDS, is_view=False) as tx:
            yield tx

    @contextlib.asynccontextmanager
    async def scanning(self, party: str = "") -> AsyncIterator[store.Transaction]:
        async with contextlib.AsyncExitStack() as held:
            with postgres_errors.translated():
                await held.enter_async_context(self._scans.hold(party, timeout=CONNECT_SECONDS))
            yield await held.enter_async_context(self._session(_BEGIN_SCAN, seconds=SCAN_SECONDS))

    @contextlib.asynccontextmanager
    async def _session(self, begin: str, *, seconds: int, is_view: bool = True) -> AsyncIterator[PostgresTransaction]:
        with postgres_errors.translated():
            # All may be in use, each as long as its statement may take. To connect has a limit of its own.
            connection = await self._pool.acquire(timeout=COMMAND_SECONDS)
        tx = PostgresTransaction(connection, self._statements, seconds=seconds)
        try:
            if is_view or not connection.plans_by_key:
                await tx.begin(begin)
            yield tx
        finally:
            await self._release(connection, failed=tx.failed)
            if tx.is_read_only:  # the others are connected to the same server
                await self._pool.expire_connections()

    async def _release(self, connection: Any, *, failed: bool) -> None:  # noqa: ANN401 - untyped library
        """Roll back what is not committed and return the connection; errors are ignored in favor of the first one."""
        try:
            # A cancelled call may have begun a transaction that the connection does not know of yet.
            if failed or connection.is_in_transaction():
                await connection.execute("ROLLBACK", timeout=CONNECT_SECONDS)
        except BaseException as problem:
            # A connection that cannot roll back is closed, and the server rolls back; the pool may have done so.
            with contextlib.suppress(asyncpg.InterfaceError):
                connection.terminate()
            if not isinstance(problem, Exception):
                raise
            # The others do not respond either, and callers would wait for each of them in turn.
            if isinstance(problem, TimeoutError):
                await self._pool.expire_connections()
        else:
            with contextlib.suppress(Exception):
                await self._pool.release(connection, timeout=CONNECT_SECONDS)

    async def close(self) -> None:
        # The pool waits for connections in use, and closes them when it is cancelled.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._pool.close()


async def connect(url: str, *, connections: int) -> PostgresStore:
    """A store on the server behind the URL."""
    with postgres_errors.translated():
        pool = await asyncpg.create_pool(
            url,
            connect=postgres_connections.connect,
            connection_class=postgres_connections.Connection,
            min_size=1,
            max_size=connections,
            timeout=CONNECT_SECONDS,
            command_timeout=SCAN_SECONDS,
            reset=_no_reset,
            server_settings={"application_name": "postroad"},
        )
    return PostgresStore(pool)


async def _no_reset(_connection: object) -> None:
    """Saves a round trip for every transaction: no session state outlives one, so there is nothing to reset."""


def _columns(rows: Sequence[store.Row]) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))
