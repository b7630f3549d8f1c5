"""Backup and restore of a SQLite file, while others write to it.

A backup reads one snapshot of the write-ahead log, so it is consistent without blocking the writer. Each part is
flushed before the next is read: without that, the flush of gigabytes at the end would delay the writer's commits. The
log cannot be reused meanwhile and grows by what is written during the backup.
"""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw

from postroad.storage.engine import backup_files, sqlite_connections, store

# 16 MiB: a fraction of a second of disk time.
PAGES_PER_STEP: Final = 4_096
COUNTED: Final = ("accounts", "messages", "recipients", "queue", "ledger")


def copy(source: Path, target: Path) -> backup_files.Contents:
    """Copy a database into an empty file as one file without a log, and verify the copy against its source."""
    with reported(source), contextlib.closing(_opened(source)) as reading:
        # Reading keeps the snapshot until the end. Without it, a write of another process would restart the copy.
        reading.execute("BEGIN")
        expected = _contents(reading, source)
        with contextlib.closing(apsw.Connection(str(target))) as writing:
            for pragma in ("journal_mode=OFF", "synchronous=OFF"):
                writing.execute(f"PRAGMA {pragma}").fetchall()
            with writing.backup("main", reading, "main") as work:
                while not work.done:
                    work.step(PAGES_PER_STEP)
                    backup_files.sync(target)
    fold_log(target)
    found = verify(target)
    if found != expected:
        raise backup_files.BackupError(f"the copy of {source} differs from it: {found} instead of {expected}")
    return found


def verify(file: Path) -> backup_files.Contents:
    """Check a database that nobody writes to; returns what it contains."""
    with reported(file), contextlib.closing(_opened(file)) as connection:
        return check(connection, file)


def check(connection: apsw.Connection, file: Path) -> backup_files.Contents:
    """Check every page, index and reference."""
    damage = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
    if damage != ["ok"]:
        raise backup_files.BackupError(f"{file} is damaged: {'; '.join(damage)}")
    if connection.execute("PRAGMA foreign_key_check").fetchall():
        raise backup_files.BackupError(f"{file} is damaged: rows refer to rows that do not exist")
    return _contents(connection, file)


def is_empty(file: Path) -> bool:
    """Whether a database has no account; False for a file that cannot be read, which is worth keeping."""
    try:
        with contextlib.closing(_opened(file)) as connection:
            tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
            return "accounts" not in tables or not connection.execute("SELECT 1 FROM accounts LIMIT 1").fetchall()
    except apsw.Error:
        return False


@contextlib.contextmanager
def locked(file: Path) -> Iterator[apsw.Connection]:
    """Keep everybody else from opening a database; the connection that does so is in a transaction."""
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
            # Only a connection without others can leave the mode of the log.
            connection.execute("PRAGMA journal_mode=DELETE").fetchall()
            connection.execute("BEGIN EXCLUSIVE")
        except (apsw.BusyError, apsw.LockedError):
            msg = f"{file} is in use; stop the service and every other command on it"
            raise backup_files.BackupError(msg) from None
        except (apsw.CorruptError, apsw.NotADBError):
            pass  # it is moved aside as it is
        yield connection
    finally:
        connection.close()


def commit(connection: apsw.Connection) -> None:
    """Keep what was changed under the lock, which lasts."""
    connection.execute("COMMIT")


def move_aside(file: Path, aside: Path) -> None:
    Path(f"{file}-shm").unlink(missing_ok=True)  # an index of the log, which SQLite makes again
    with contextlib.suppress(FileNotFoundError):
        Path(f"{file}-wal").rename(f"{aside}-wal")
    file.rename(aside)


def fold_log(file: Path) -> None:
    """Make a database that nobody uses one file without a log."""
    with contextlib.closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()
    backup_files.sync(file)


def rows(connection: apsw.Connection, table: str, columns: Sequence[str]) -> Iterator[store.Row]:
    """All rows of a table, in the order in which they are stored."""
    return connection.execute(f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608 - names of ours


def count(connection: apsw.Connection, table: str) -> int:
    return _number(connection, f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - a name of ours


def _number(connection: apsw.Connection, statement: str) -> int:
    return int(connection.execute(statement).get or 0)


def _opened(file: Path) -> apsw.Connection:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(int(sqlite_connections.BUSY_SECONDS * 1000))
    return connection


def _contents(connection: apsw.Connection, file: Path) -> backup_files.Contents:
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables.issuperset({"schema_migrations", *COUNTED}):
        raise backup_files.BackupError(f"{file} is not a database of Postroad: tables are missing")
    version = _number(connection, "SELECT MAX(version) FROM schema_migrations")
    return backup_files.Contents(version, {table: count(connection, table) for table in COUNTED})


@contextlib.contextmanager
def reported(file: Path) -> Iterator[None]:
    """Name the file in errors of SQLite."""
    try:
        yield
    except apsw.Error as problem:
        raise backup_files.BackupError(f"{file}: {problem}") from problem
