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
import functools
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import asyncpg

from postroad import errors
from postroad.concurrency import fairness
from postroad.storage.engine import postgres_connections, queries, store

# Changes whose results nobody needs, collected and sent to PostgreSQL as one statement instead of a round trip each.
#
# asyncpg has no pipelining, so changes become parts of one `WITH` statement. Its parts do not see each other's changes,
# and their order is not defined. So only changes that have no table in common go together, and a statement that has one
# in common with them is sent after them.

# A table follows one of these words. The UPDATE of FOR UPDATE and DO UPDATE has none, and a function is none.
_TABLE: Final = re.compile(r"\b(?:FROM|JOIN|INTO|USING|(?<!FOR )(?<!DO )UPDATE)\s+(\w+)\b(?!\()")
_COMMENT: Final = re.compile(r"--.*")
_PLACEHOLDER: Final = re.compile(r"\$(\d+)")


@functools.lru_cache(maxsize=1_000)
def tables_of(statement: str) -> frozenset[str]:
    """The tables that a statement names, and the names that it gives to its own parts."""
    return frozenset(_TABLE.findall(_COMMENT.sub("", statement)))


@functools.lru_cache(maxsize=1_000)
def combine(statements: tuple[str, ...]) -> str:
    """One statement that makes all these changes; its arguments are theirs, in order."""
    if len(statements) == 1:
        return statements[0]
    parts, shift = [], 0
    for number, statement in enumerate(statements, start=1):
        parts.append(f"change_{number} AS (\n{_shifted(statement, shift).rstrip(';')}\n)")
        shift += max(map(int, _PLACEHOLDER.findall(statement)))
    return f"WITH {', '.join(parts)} SELECT"


def _shifted(statement: str, shift: int) -> str:
    return _PLACEHOLDER.sub(lambda place: f"${int(place[1]) + shift}", statement)


class PendingWrites:
    def __init__(self) -> None:
        self._statements: list[str] = []
        self._arguments: list[Sequence[Any]] = []
        self._tables: set[str] = set()

    def concern(self, tables: frozenset[str]) -> bool:
        """Whether they have to be sent before a statement about these tables."""
        return not self._tables.isdisjoint(tables)

    def add(self, statement: str, arguments: Sequence[Sequence[Any]]) -> None:
        self._statements.append(statement)
        self._arguments += arguments
        self._tables |= tables_of(statement)

    def take(self) -> tuple[str, Sequence[Sequence[Any]]] | None:
        """All of them as one statement, and its arguments; None when there are none."""
        if not self._statements:
            return None
        statements, arguments = tuple(self._statements), self._arguments
        self._statements, self._arguments, self._tables = [], [], set()
        return combine(statements), arguments


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
_BEGIN_LONG = f"BEGIN ISOLATION LEVEL READ COMMITTED{_ANY_PLAN}"
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
        self._pending = PendingWrites()

    async def begin(self, begin: str) -> None:
        """Begin and set the timeouts of the server in one round trip, which may wait for PgBouncer."""
        with self._guarded():
            await self._connection.execute(
                f"{begin}; SET LOCAL statement_timeout = {self._seconds * 1000}; "
                f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_SECONDS * 1000}",
                timeout=CONNECT_SECONDS,
            )

    async def commit(self) -> None:
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
            with postgres_connections.translated():
                yield
        except BaseException as problem:
            self.failed = True
            self.is_read_only = isinstance(problem.__cause__, asyncpg.ReadOnlySQLTransactionError)
            # asyncpg does not expect that a connection is closed between two steps of a statement, such as at a stop.
            if isinstance(problem, AttributeError) and self._is_closed():
                raise postgres_connections.unreachable() from problem
            raise

    def _is_closed(self) -> bool:
        try:
            return bool(self._connection.is_closed())
        except asyncpg.InterfaceError:  # the pool has it back
            return True

    async def fetch(self, query: str, *arguments: object) -> list[store.Row]:
        return await self.fetch_composed(self._statements[query], *arguments)

    async def fetch_composed(self, statement: str, *arguments: object) -> list[store.Row]:
        await self._send_before(tables_of(statement))
        with self._guarded():
            rows: list[store.Row] = await self._connection.fetch(statement, *arguments, timeout=self._seconds)
        return rows

    async def fetch_one(self, query: str, *arguments: object) -> store.Row | None:
        with self._guarded():
            statement = self._statements[query]
            await self._send_before(tables_of(statement))
            row: store.Row | None = await self._connection.fetchrow(statement, *arguments, timeout=self._seconds)
        return row

    async def fetch_many(self, query: str, rows: Sequence[store.Row]) -> list[store.Row]:
        return await self.fetch(query, *_columns(rows)) if rows else []

    async def execute(self, query: str, *arguments: object) -> int:
        with self._guarded():
            statement = self._statements[query]
            await self._send_before(tables_of(statement))
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
                await self._send_before(tables_of(statement))
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
    dialect = "postgres"

    def __init__(self, pool: Any) -> None:  # noqa: ANN401 - untyped library
        self._pool = pool
        self._statements = queries.load(self.dialect)
        # Scans take long; half of the connections stay free for mail and lookups.
        self._scans = fairness.FairSemaphore(max(1, pool.get_max_size() // 2), alpha=store.SCAN_ALPHA)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[store.Transaction]:
        async with self._session(_BEGIN, seconds=COMMAND_SECONDS) as tx:
            yield tx
            await tx.commit()

    @contextlib.asynccontextmanager
    async def long_transaction(self) -> AsyncIterator[store.Transaction]:
        """A change of a whole database by a command, whose statements may take as long as a script."""
        async with self._session(_BEGIN_LONG, seconds=SCRIPT_SECONDS) as tx:
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
            with postgres_connections.translated():
                await held.enter_async_context(self._scans.hold(party, timeout=CONNECT_SECONDS))
            yield await held.enter_async_context(self._session(_BEGIN_SCAN, seconds=SCAN_SECONDS))

    @contextlib.asynccontextmanager
    async def _session(self, begin: str, *, seconds: int, is_view: bool = True) -> AsyncIterator[PostgresTransaction]:
        with postgres_connections.translated():
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
    with postgres_connections.translated():
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


# Wake-ups between hosts: NOTIFY after a commit, and LISTEN in the processes that have the work to do.
#
# NOTIFY takes a lock of the whole server until the end of its transaction, which in a transaction that writes would
# make all hosts flush to disk one after the other. So it has a transaction of its own, which nobody waits for to be on
# disk. A wake-up may be lost, with its connection or with the server: whoever listens also polls.

_BEGIN_NOTIFY = "BEGIN; SET LOCAL synchronous_commit = off; "


class Wakeups:
    """One connection for wake-ups of both directions; `is_lost` is set when it ends."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401 - untyped library
        self.is_lost = asyncio.Event()
        self._connection = connection
        connection.add_termination_listener(lambda _: self.is_lost.set())

    async def listen(self, wake: Mapping[str, Callable[[], None]]) -> bool:
        """Call these functions by channel from now on; False behind a pooler, which keeps no session for it."""
        with postgres_connections.translated():
            if await postgres_connections.is_pooled(self._connection):
                return False
            for channel, call in wake.items():
                await self._connection.add_listener(channel, lambda *_, call=call: call())
        return True

    async def send(self, channels: Collection[str]) -> None:
        """Wake up the listeners of these channels; with none, find out whether the server still answers."""
        statements = "".join(f"NOTIFY {channel}; " for channel in channels)
        with postgres_connections.translated():
            await self._connection.execute(
                f"{_BEGIN_NOTIFY}{statements}COMMIT", timeout=postgres_connections.CONNECT_SECONDS
            )


@contextlib.asynccontextmanager
async def connected_wakeups(url: str) -> AsyncIterator[Wakeups]:
    """A connection for the time of the block."""
    with postgres_connections.translated():
        connection = await postgres_connections.connect(
            url,
            timeout=postgres_connections.CONNECT_SECONDS,
            server_settings={"application_name": "postroad_wakeups"},
        )
    try:
        yield Wakeups(connection)
    finally:
        connection.terminate()
