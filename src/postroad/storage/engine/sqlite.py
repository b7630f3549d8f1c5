"""SQLite: one file on one host, one connection that writes, a few that read.

Short statements run on the event loop, because a thread that runs many of them competes with the loop for the
interpreter lock. What may wait for the disk runs in a thread: COMMIT, and everything in `scanning`. Scans are limited
in number and time and have their own connections, so they neither delay lookups nor let the log grow without limit.

A commit of `leasing` does not wait for the disk, so it needs no thread. The next durable commit flushes it as well. A
power cut before that takes the lease, and the worker that held it: both are on this host.

A connection is used by one thread at a time: a cancelled caller waits until its thread is done before it returns.
"""

import asyncio
import contextlib
import functools
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import apsw

from postroad import errors
from postroad.concurrency import fairness
from postroad.storage.engine import queries, sqlite_connections, store

# At most 64 MiB, which is 16,000 pages; until then all copies are made beside the commits.
MAX_PAGES: Final = 4 * sqlite_connections.CHECKPOINT_PAGES


class WriteAheadLog:
    """How long the log is, when it is copied to the main file, and its repair, as the connection that writes knows it.

    SQLite would copy it (a checkpoint) within the commit that makes it long, and that commit would take tens of
    milliseconds longer. Here another connection copies it while commits go on. SQLite begins the log again only when
    all of it is copied, which commits can prevent for ever, so a long log is copied to its end between two commits.

    The log is a chain: a commit counts after a power cut only if everything before it in the log is there as well. A
    flush covers all of the file, so a commit that is flushed is never missing anything, unless an earlier flush failed:
    the kernel then calls pages clean that are not on disk, and the next flush skips them. They are still in its cache
    (ext4 and XFS), so writing the log's own content again repairs it.
    """

    def __init__(self, database: Path, writer: apsw.Connection) -> None:
        # Set when a flush has failed.
        self.is_in_doubt = False
        # All of it is copied, so the next commit begins it again and flushes its header, even that of a lease.
        self.is_copied = False
        self._path = Path(f"{database}-wal")
        self._pages = 0
        self._due_pages = sqlite_connections.CHECKPOINT_PAGES
        # In place of SQLite's own, which copies the log within the commit.
        writer.set_wal_hook(self._on_commit)

    @property
    def size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    @property
    def is_due(self) -> bool:
        """Whether enough was added for another copy; after a failed flush the next commit repairs the log first."""
        return self._pages >= self._due_pages and not self.is_in_doubt

    @property
    def is_long(self) -> bool:
        """Whether commits must wait until all of it is copied."""
        return self._pages >= MAX_PAGES

    def copy_beside_commits(self, database: Path) -> None:
        """Copy what is in the log now, unless some of it may not be on disk: the main file would be ahead of it."""
        if self.is_in_doubt:
            return
        self._due_pages = self._pages + sqlite_connections.CHECKPOINT_PAGES
        connection = sqlite_connections.connect(database)
        try:
            pages, copied = connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        finally:
            connection.close()
        self.is_copied = pages == copied == self._pages

    def write_again(self) -> None:
        """Let the disk have all of it after a failed flush; nobody else may write meanwhile."""
        with self._path.open("r+b") as log:
            content = log.read()
            log.seek(0)
            log.write(content)
            log.flush()
            os.fdatasync(log.fileno())
        self.is_in_doubt = False

    def _on_commit(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        if pages < self._pages:  # it has begun again
            self._due_pages = sqlite_connections.CHECKPOINT_PAGES
        self._pages = pages
        self.is_copied = False
        return apsw.SQLITE_OK


# How often to poll for the file's write lock while another process holds it: first after the time of a short
# transaction, then with growing delays.
FIRST_BUSY_POLL_SECONDS = 0.0005
MAX_BUSY_POLL_SECONDS = 0.01
# A lookup blocks the event loop, so its wait is short. It waits only while another process recovers the log after a
# crash.
LOOKUP_BUSY_MILLISECONDS = 100
# How long a transaction or a view may wait for a connection of this process.
SLOT_WAIT_SECONDS = 10.0
LOOKUPS = 4
SCANS = 4
# The log cannot be reused while a scan reads it.
SCAN_SECONDS = 60.0
# The log grows while scans overlap; at this size new scans wait until it is truncated.
MAX_WAL_BYTES = 256 * 1024 * 1024
CLOSE_SECONDS = 10.0
_PLACEHOLDER = re.compile(r"\$(\d+)")


class SqliteTransaction:
    """Queries on one connection, on the event loop. A failed one aborts the transaction, as on PostgreSQL."""

    def __init__(self, connection: apsw.Connection, statements: Mapping[str, str]) -> None:
        self.failed = False
        self.connection = connection
        self._statements = statements

    def check(self) -> None:
        """Raise TransactionAborted when a query has failed."""
        if self.failed:
            raise store.TransactionAborted

    def _run(
        self,
        execute: Callable[[str, Any], apsw.Cursor],
        query: str,
        bindings: Sequence[Any],
        rows: Callable[[apsw.Cursor], Any] = apsw.Cursor.fetchall,
        *,
        statement: str | None = None,
    ) -> Any:  # noqa: ANN401 - what `rows` returns
        """Run a query by its name, or a statement that has none."""
        if self.failed:
            raise store.TransactionAborted
        try:
            return rows(execute(statement or self._statements[query], bindings))
        except BaseException:
            self.failed = True
            with sqlite_connections.public_errors():
                raise

    async def fetch(self, query: str, *arguments: Any) -> list[store.Row]:
        found: list[store.Row] = self._run(self.connection.execute, query, arguments)
        return found

    async def fetch_one(self, query: str, *arguments: Any) -> store.Row | None:
        found: store.Row | None = self._run(self.connection.execute, query, arguments, apsw.Cursor.fetchone)
        return found

    async def fetch_composed(self, statement: str, *arguments: Any) -> list[store.Row]:
        found: list[store.Row] = self._run(
            self.connection.execute, "", arguments, statement=_PLACEHOLDER.sub(r"?\1", statement)
        )
        return found

    async def fetch_many(self, query: str, rows: Sequence[store.Row]) -> list[store.Row]:
        found: list[store.Row] = self._run(self.connection.executemany, query, rows)
        return found

    async def execute(self, query: str, *arguments: Any) -> int:
        # `changes` keeps the count of the last change when a statement changes nothing; the total does not.
        before = self.connection.total_changes()
        self._run(self.connection.execute, query, arguments)
        return self.connection.total_changes() - before

    async def execute_many(self, query: str, rows: Sequence[store.Row]) -> None:
        self._run(self.connection.executemany, query, rows)

    execute_later = execute_many

    async def add_rows(self, table: str, columns: Sequence[str], rows: Sequence[store.Row]) -> None:
        places = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"  # noqa: S608 - names, all our own
        self._run(self.connection.executemany, "", rows, statement=statement)

    async def run_script(self, script: str) -> None:
        self._run(self.connection.execute, "", (), statement=script)


class ThreadedTransaction(SqliteTransaction):
    """Reads in a thread. A query that takes too long, or whose caller is cancelled, is interrupted."""

    def __init__(self, connection: apsw.Connection, statements: Mapping[str, str], threads: ThreadPoolExecutor) -> None:
        super().__init__(connection, statements)
        self._threads = threads

    async def _run_in_thread(self, *work: Any, statement: str | None = None) -> Any:  # noqa: ANN401 - as `_run`
        loop = asyncio.get_running_loop()
        alarm = loop.call_later(SCAN_SECONDS, self.connection.interrupt)
        try:
            run = functools.partial(self._run, *work, statement=statement)
            done = loop.run_in_executor(self._threads, run)
            return await fairness.finished(done, interrupt=self.connection.interrupt)
        finally:
            alarm.cancel()

    async def fetch(self, query: str, *arguments: Any) -> list[store.Row]:
        found: list[store.Row] = await self._run_in_thread(self.connection.execute, query, arguments)
        return found

    async def fetch_one(self, query: str, *arguments: Any) -> store.Row | None:
        found: store.Row | None = await self._run_in_thread(
            self.connection.execute, query, arguments, apsw.Cursor.fetchone
        )
        return found

    async def fetch_composed(self, statement: str, *arguments: Any) -> list[store.Row]:
        numbered = _PLACEHOLDER.sub(r"?\1", statement)
        found: list[store.Row] = await self._run_in_thread(self.connection.execute, "", arguments, statement=numbered)
        return found

    async def fetch_many(self, query: str, rows: Sequence[store.Row]) -> list[store.Row]:
        found: list[store.Row] = await self._run_in_thread(self.connection.executemany, query, rows)
        return found


class _Block:
    """A transaction or a view as an `async with`; a class, because a generator costs a commit 30 more calls."""

    __slots__ = ("_begin", "_end", "_tx")

    def __init__(
        self,
        begin: Callable[[], Awaitable[SqliteTransaction]],
        end: Callable[[SqliteTransaction, bool], Awaitable[None]],
    ) -> None:
        self._begin = begin
        self._end = end

    async def __aenter__(self) -> store.Transaction:
        self._tx = await self._begin()
        return self._tx

    async def __aexit__(self, kind: type[BaseException] | None, _problem: object, _traceback: object) -> None:
        await self._end(self._tx, kind is None)


class _Readers:
    """Read-only connections: the idle ones, and a limit on how many are in use."""

    def __init__(
        self, limit: int, view_of: Callable[[apsw.Connection], SqliteTransaction], *, busy_milliseconds: int
    ) -> None:
        self.limit = limit
        self.view_of = view_of
        self.busy_milliseconds = busy_milliseconds
        self.slots = asyncio.Semaphore(limit)
        self.idle: list[apsw.Connection] = []

    @contextlib.asynccontextmanager
    async def all_returned(self) -> AsyncIterator[None]:
        """Wait until none is in use, and block their use meanwhile."""
        taken = 0
        try:
            async with asyncio.timeout(SLOT_WAIT_SECONDS):
                while taken < self.limit:
                    await self.slots.acquire()
                    taken += 1
            yield
        finally:
            for _ in range(taken):
                self.slots.release()

    def close(self) -> None:
        while self.idle:
            self.idle.pop().close()


def load_statements() -> dict[str, str]:
    return {name: _PLACEHOLDER.sub(r"?\1", statement) for name, statement in queries.load("sqlite").items()}


class SqliteStore:
    dialect = "sqlite"

    def __init__(self, path: Path) -> None:
        # Absolute, so that SQLite sees no special name such as `:memory:`, and changing the folder has no effect.
        self._path = path.absolute()
        self._statements = load_statements()
        sqlite_connections.create(self._path)
        self._writer = sqlite_connections.connect(self._path)
        # The file's lock is requested on the event loop, which must not block: see `_begin`.
        self._writer.set_busy_timeout(0)
        self._synchronous = sqlite_connections.DURABLE
        self._write_slot = asyncio.Semaphore(1)
        self._waiting_transactions = 0
        self._changes_before = 0
        self._commit_thread = fairness.WorkThread(name="sqlite-commit")
        self._log = WriteAheadLog(self._path, self._writer)
        self._copy_thread = fairness.WorkThread(name="sqlite-checkpoint")
        self._copying: asyncio.Task[None] | None = None
        self._scan_threads = ThreadPoolExecutor(SCANS, thread_name_prefix="sqlite-scan")
        self._lookups = _Readers(
            LOOKUPS,
            lambda connection: SqliteTransaction(connection, self._statements),
            busy_milliseconds=LOOKUP_BUSY_MILLISECONDS,
        )
        self._scans = _Readers(
            SCANS,
            lambda connection: ThreadedTransaction(connection, self._statements, self._scan_threads),
            busy_milliseconds=int(sqlite_connections.BUSY_SECONDS * 1000),
        )
        self._scan_shares = fairness.FairSemaphore(SCANS, alpha=store.SCAN_ALPHA)
        self._truncating = asyncio.Lock()
        self._is_closing = False

    def transaction(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        begin = functools.partial(self._begin, sqlite_connections.DURABLE)
        return _Block(begin, functools.partial(self._end, self._commit))

    def leasing(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        begin = functools.partial(self._begin, sqlite_connections.LEASE)
        return _Block(begin, functools.partial(self._end, self._commit_lease))

    async def _begin(self, synchronous: str) -> SqliteTransaction:
        """Wait for the write slot, and take the file's write lock: by polling, as SQLite does, but without blocking."""
        if synchronous == sqlite_connections.LEASE:
            await self._acquire_slot(self._write_slot)
            if self._waiting_transactions:
                # Callers wait for those. Only once: a busy store must not keep leases waiting for ever.
                self._write_slot.release()
                await self._acquire_slot(self._write_slot)
        else:
            self._waiting_transactions += 1
            try:
                await self._acquire_slot(self._write_slot)
            finally:
                self._waiting_transactions -= 1
        try:
            if self._synchronous != synchronous:
                # It has its effect when it is parsed, so a cached statement would have none.
                self._writer.execute(f"PRAGMA synchronous={synchronous}", can_cache=False)
                self._synchronous = synchronous
            try:
                self._writer.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                await self._poll()
            self._changes_before = self._writer.total_changes()
        except BaseException:
            self._write_slot.release()
            with sqlite_connections.public_errors():
                raise
        return SqliteTransaction(self._writer, self._statements)

    async def _poll(self) -> None:
        """Begin when the other process that holds the file's write lock lets it go."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + sqlite_connections.BUSY_SECONDS
        wait = FIRST_BUSY_POLL_SECONDS
        while not self._writer.in_transaction:
            await asyncio.sleep(wait)
            wait = min(2 * wait, MAX_BUSY_POLL_SECONDS)
            try:
                self._writer.execute("BEGIN IMMEDIATE")
            except apsw.BusyError:
                if loop.time() > deadline:
                    raise

    async def _end(self, commit: Callable[[], Awaitable[None]], tx: SqliteTransaction, is_done: bool) -> None:  # noqa: FBT001 - of `_Block`
        """Commit what is done, and give the write slot back."""
        try:
            if is_done:
                tx.check()
                await commit()
        finally:
            if self._writer.in_transaction:  # else SQLite has rolled back by itself
                # Best effort: the first error is the one to report.
                with contextlib.suppress(apsw.Error):
                    self._writer.execute("ROLLBACK")
            self._write_slot.release()
        if self._log.is_due and (self._copying is None or self._copying.done()):
            self._copying = asyncio.get_running_loop().create_task(self._copy_log())

    async def _commit(self) -> None:
        # A transaction that changed nothing needs no flush, so it comes through while flushes fail.
        if self._log.is_in_doubt and self._writer.total_changes() > self._changes_before:
            await _in_thread(self._commit_thread, self._log.write_again)
        try:
            await _in_thread(self._commit_thread, functools.partial(self._writer.execute, "COMMIT"))
        except errors.ServiceUnavailable:
            self._log.is_in_doubt = True
            raise

    async def _commit_lease(self) -> None:
        if self._log.is_copied:
            await self._commit()
            return
        with sqlite_connections.public_errors():
            self._writer.execute("COMMIT")

    def reading(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        return self._view(self._lookups)

    def looking_up(self) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        return self.reading()

    @contextlib.asynccontextmanager
    async def scanning(self, party: str = "") -> AsyncIterator[store.Transaction]:
        if self._log.size > MAX_WAL_BYTES and not self._truncating.locked():
            await self._truncate_log()
        async with contextlib.AsyncExitStack() as held:
            try:
                await held.enter_async_context(self._scan_shares.hold(party, timeout=SLOT_WAIT_SECONDS))
            except TimeoutError as cause:
                raise sqlite_connections.busy() from cause
            yield await held.enter_async_context(self._view(self._scans))

    def _view(self, readers: _Readers) -> contextlib.AbstractAsyncContextManager[store.Transaction]:
        return _Block(functools.partial(self._begin_view, readers), functools.partial(self._end_view, readers))

    async def _begin_view(self, readers: _Readers) -> SqliteTransaction:
        await self._acquire_slot(readers.slots)
        connection = None
        try:
            connection = readers.idle.pop() if readers.idle else self._connect_reader(readers)
            connection.execute("BEGIN")
        except BaseException:
            if connection is not None:
                connection.close()
            readers.slots.release()
            with sqlite_connections.public_errors():
                raise
        return readers.view_of(connection)

    async def _end_view(self, readers: _Readers, view: SqliteTransaction, _is_done: bool) -> None:  # noqa: FBT001 - of `_Block`
        """A connection on which anything failed is not used again."""
        try:
            if view.failed or self._is_closing:
                view.connection.close()
            else:
                view.connection.execute("ROLLBACK")
                readers.idle.append(view.connection)
        except apsw.Error:
            view.connection.close()
        finally:
            readers.slots.release()

    async def _copy_log(self) -> None:
        """Copy the log to the main file beside transactions; the rest of a long one between two of them."""
        with contextlib.suppress(errors.PostroadError):  # then the next one tries
            await _in_thread(self._copy_thread, functools.partial(self._log.copy_beside_commits, self._path))
            if self._log.is_long:
                await self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)

    async def _truncate_log(self) -> None:
        """Write the log to the main file while no scan runs: as long as scans overlap, it only grows."""
        with contextlib.suppress(errors.PostroadError, TimeoutError):  # then the next scan tries
            async with self._truncating, self._scans.all_returned():
                # Most of it while transactions continue, the rest between two of them.
                await _in_thread(self._copy_thread, functools.partial(self._log.copy_beside_commits, self._path))
                await self._checkpoint(apsw.SQLITE_CHECKPOINT_TRUNCATE)

    async def _checkpoint(self, mode: int) -> None:
        await self._acquire_slot(self._write_slot)
        try:
            if self._log.is_in_doubt:
                await _in_thread(self._commit_thread, self._log.write_again)
            await _in_thread(self._commit_thread, functools.partial(self._writer.wal_checkpoint, mode=mode))
        except errors.ServiceUnavailable:
            # It flushes the log first. The kernel tells a failure once, so the next commit would not hear of it.
            self._log.is_in_doubt = True
            raise
        finally:
            self._write_slot.release()

    def _connect_reader(self, readers: _Readers) -> apsw.Connection:
        connection = sqlite_connections.connect(self._path)
        connection.execute("PRAGMA query_only=ON")
        connection.set_busy_timeout(readers.busy_milliseconds)
        return connection

    async def _acquire_slot(self, slots: asyncio.Semaphore) -> None:
        if slots.locked():
            try:
                async with asyncio.timeout(SLOT_WAIT_SECONDS):
                    await slots.acquire()
            except TimeoutError as cause:
                raise sqlite_connections.busy() from cause
        else:
            await slots.acquire()  # immediately, as most are; a timer costs as much as a lookup
        if self._is_closing:
            slots.release()
            msg = "the service is stopping; nothing was accepted"
            raise errors.ServiceUnavailable(msg, retry_after=5)

    async def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        # What does not end in time is closed by its own block, or with the process.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._copying is not None:
                    await asyncio.wait([self._copying])
                self._copy_thread.close()
                async with self._write_slot:
                    self._writer.close()
                    self._commit_thread.close()
                async with self._lookups.all_returned(), self._scans.all_returned():
                    self._scan_threads.shutdown()
        self._lookups.close()
        self._scans.close()


async def _in_thread(thread: fairness.WorkThread, work: Callable[[], object]) -> None:
    def translated() -> None:
        with sqlite_connections.public_errors():
            work()

    await thread.run(translated)
