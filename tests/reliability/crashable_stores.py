"""The two engines as places for accidents: a new and empty store for each run, processes on it, and what can happen.

A dead process on SQLite leaves its files as they were at that instant: the database and its log, the log of a commit
under way cut at any byte. On PostgreSQL it leaves a server whose connection broke. A store in trouble, which its
processes survive, is a file that may not grow on SQLite, and a connection that the server ends on PostgreSQL.
"""

import asyncio
import contextlib
import resource
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import asyncpg

from postroad import config, context
from postroad.roles import composition
from postroad.storage.engine import open_store, postgres, sqlite, store
from tests import clean_databases, contexts, postgres_server
from tests.reliability import faults

# Small, so that a run meets it: a request a second in the long run.
RATE, BURST = 1, 6
# A commit writes more pages than these.
COMMIT_BYTES = 16_000
# How long after a COMMIT was sent its connection is cut: less than it takes, or more.
CUT_SECONDS = 0.002
TIMEOUT_SECONDS = 600.0


def settings_of(url: str) -> config.Settings:
    """The settings of every process."""
    return config.load(
        environment={},
        overrides={
            "database": {"url": url, "connections": 4},
            "security": {"installation_key": contexts.SECRET_KEY},
            "limits": {"request_rate": RATE, "request_burst": BURST},
            "warmup": {"enabled": False},
        },
    )


class Process:
    """A context of its own on a shared store, as another process has it."""

    def __init__(self, ctx: context.Context, database: faults.FaultyStore, stack: contextlib.AsyncExitStack) -> None:
        self.ctx = ctx
        self.store = database
        self.stop = stack.aclose

    @classmethod
    async def start(cls, url: str, *, clock: Callable[[], int]) -> "Process":
        opened: list[faults.FaultyStore] = []
        open_current = open_store.open_current

        async def open_faulty(url: str, **options: Any) -> store.Store:
            opened.append(faults.FaultyStore(await open_current(url, **options)))
            return opened[0]

        async with contextlib.AsyncExitStack() as stack:
            with mock.patch.object(open_store, "open_current", open_faulty):
                ctx = await stack.enter_async_context(composition.open_context(settings_of(url), clock=clock))
            return cls(ctx, opened[0], stack.pop_all())


class CrashHarness:
    """A process on a store for accidents; when it has died, another one takes its place."""

    process: Process

    def __init__(self, engine: "Engine") -> None:
        self.engine = engine
        self.clock = contexts.Clock()

    async def open(self) -> None:
        await self.engine.open()
        self.process = await Process.start(self.engine.url, clock=self.clock)

    async def restart(self, fault: faults.Fault) -> None:
        """The process dies now, if it has not done so, and another one starts."""
        await self.process.store.die(fault)
        await self.process.stop()
        await self.engine.recover()
        self.process = await Process.start(self.engine.url, clock=self.clock)

    async def close(self) -> None:
        await self.process.stop()
        await self.engine.close()


class CrashingServer(postgres_server.PostgresServer):
    """A database server that can be ended without a chance to tidy up; its next start repairs what it finds."""

    def crash(self) -> None:
        assert self._server is not None
        assert self._guard is not None
        self._server.send_signal(signal.SIGQUIT)  # PostgreSQL's "immediate" shutdown
        self._server.wait(TIMEOUT_SECONDS)
        self._guard.communicate(b"stopped\n", timeout=TIMEOUT_SECONDS)
        self._server = self._guard = None


class Engine(Protocol):
    """A place for accidents."""

    # Whether a process that dies takes the others with it.
    dies_as_one: bool

    @property
    def url(self) -> str:
        """The address of the store as it is now."""
        ...

    async def open(self) -> None:
        """A new and empty store."""
        ...

    def death(self, process: Process, moment: faults.Moment, *, statements: int, share: float) -> faults.Fault:
        """The fault that ends the process; `share` of a commit under way gets through."""
        ...

    def trouble(self, process: Process, moment: faults.Moment, *, statements: int, share: float) -> faults.Fault:
        """The fault that the process survives."""
        ...

    async def recover(self) -> None:
        """After a process has died: the store is as it will be found."""
        ...

    async def settle(self) -> None:
        """After trouble: the store works again."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


class SqliteEngine:
    """A file; every death moves on to a copy of it."""

    dies_as_one = True

    def __init__(self, folder: Path, template: Path) -> None:
        self._folder = folder
        self._template = template
        self._number = 0
        self._log_before: bytes | None = None
        self._limited: list[Any] = []
        self._size_limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    @property
    def url(self) -> str:
        return f"sqlite:///{self._file}"

    @property
    def _file(self) -> Path:
        return self._folder / f"{self._number}.db"

    @property
    def _log(self) -> Path:
        return self._folder / f"{self._number}.db-wal"

    async def open(self) -> None:
        self._folder.mkdir()
        shutil.copyfile(self._template, self._file)

    def death(self, _process: Process, moment: faults.Moment, *, statements: int, share: float) -> faults.Fault:

        async def brace(_tx: store.Transaction) -> None:
            self._log_before = self._log.read_bytes()

        async def strike(_tx: store.Transaction | None) -> None:
            log = self._log.read_bytes()
            if self._log_before is not None:
                log = _cut(self._log_before, log, share=share)
                self._log_before = None
            # SQLite's locks end with these reads (POSIX), which no other process can notice: all that use it are here.
            database = self._file.read_bytes()
            self._number += 1
            self._file.write_bytes(database)
            self._log.write_bytes(log)

        return faults.Fault(moment=moment, statements=statements, is_fatal=True, brace=brace, strike=strike)

    def trouble(self, process: Process, moment: faults.Moment, *, statements: int, share: float) -> faults.Fault:
        real = process.store.real
        assert isinstance(real, sqlite.SqliteStore)
        writer = real._writer

        async def strike(_tx: store.Transaction | None) -> None:
            if moment is faults.Moment.BEFORE:
                self._limited.append(writer)
                writer.execute("PRAGMA max_page_count=1").fetchall()  # SQLite takes it for the present number
            else:
                self._lift_size_limit()

        async def brace(_tx: store.Transaction) -> None:
            _limit_size(self._log.stat().st_size + int(share * COMMIT_BYTES), hard=self._size_limit[1])

        return faults.Fault(moment=moment, statements=statements, is_fatal=False, brace=brace, strike=strike)

    async def recover(self) -> None:
        pass

    def _lift_size_limit(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._size_limit)

    async def settle(self) -> None:
        self._lift_size_limit()
        while self._limited:
            self._limited.pop().execute("PRAGMA max_page_count=4294967294").fetchall()

    async def close(self) -> None:
        shutil.rmtree(self._folder)


def _cut(before: bytes, after: bytes, *, share: float) -> bytes:
    """A log that was being written from front to back when the process died; new frames come behind the old ones."""
    start = len(before) if after.startswith(before) else 0
    end = start + int(share * (len(after) - start))
    return after[:end] + before[end:]


def _limit_size(size: int, *, hard: int) -> None:
    """No file of this process may grow beyond this; Python ignores the signal, so a write fails with EFBIG."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))


class PostgresEngine:
    """A database that is emptied for each run."""

    dies_as_one = False

    def __init__(self, url: str) -> None:
        self.url = url
        self._operator: Any = None
        self._cuts: list[asyncio.Task[object]] = []

    async def open(self) -> None:
        self._operator = await asyncpg.connect(self.url)
        await self._operator.execute(await self._operator.fetchval(clean_databases.SELECT_CLEANUP))
        await self._operator.execute(clean_databases.INSERT_FIRST_ROW)

    def death(self, process: Process, moment: faults.Moment, *, statements: int, share: float) -> faults.Fault:
        real = process.store.real
        assert isinstance(real, postgres.PostgresStore)
        pool = real._pool

        async def brace(_tx: store.Transaction) -> None:
            asyncio.get_running_loop().call_later(share * CUT_SECONDS, pool.terminate)

        async def strike(_tx: store.Transaction | None) -> None:
            pool.terminate()

        return faults.Fault(moment=moment, statements=statements, is_fatal=True, brace=brace, strike=strike)

    def trouble(self, _process: Process, moment: faults.Moment, *, statements: int, share: float) -> faults.Fault:

        async def cut(tx: store.Transaction | None, seconds: float) -> None:
            assert isinstance(tx, postgres.PostgresTransaction)
            connection = tx._connection._con
            await asyncio.sleep(seconds)
            await self._operator.execute("SELECT pg_terminate_backend($1, 10000)", connection.get_server_pid())
            async with asyncio.timeout(TIMEOUT_SECONDS):
                while not connection.is_closed():
                    await asyncio.sleep(0.001)

        async def brace(tx: store.Transaction) -> None:
            self._cuts.append(asyncio.create_task(cut(tx, share * CUT_SECONDS)))

        async def strike(tx: store.Transaction | None) -> None:
            if moment is faults.Moment.BEFORE:
                await cut(tx, 0)

        return faults.Fault(moment=moment, statements=statements, is_fatal=False, brace=brace, strike=strike)

    async def recover(self) -> None:
        """The server needs a moment to notice that a connection broke, and may be about to commit."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while await self._operator.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND state <> 'idle'"
            ):
                await asyncio.sleep(0.001)

    async def settle(self) -> None:
        while self._cuts:
            await self._cuts.pop()
        await self.recover()

    async def close(self) -> None:
        await self._operator.close()
