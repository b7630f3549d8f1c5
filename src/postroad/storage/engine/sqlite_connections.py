"""Connections to a SQLite file, and the mapping of its errors to those of Postroad.

WAL with `synchronous=FULL`: a commit returns after its pages are on disk, unless its transaction only leases. A file
that cannot have a WAL, such as one in memory, is refused. So is SQLite before 3.51.3, which can corrupt a WAL
database when a checkpoint coincides with a reset. The `apsw` wheel contains its own SQLite.
"""

import contextlib
import os
from pathlib import Path
from types import TracebackType
from typing import Final

import apsw

from postroad import errors
from postroad.storage.engine import backup_files, store

MIN_SQLITE_VERSION = (3, 51, 3)
# `PRAGMA synchronous` of transactions, and of those that only lease: they are flushed with the next transaction.
DURABLE = "FULL"
LEASE = "NORMAL"
# How long to wait for another process that holds a lock on the file.
BUSY_SECONDS = 5.0
# 16 MiB of log between checkpoints: fewer, larger writes to the main file than the default of 4 MiB.
CHECKPOINT_PAGES = 4_000
# A log that grew beyond this during a long scan is truncated when it is reused from its start.
WAL_BYTES = 64 * 1024 * 1024
# The cache is a ring: each row of a batch moves its statement by one place, and an evicted one is parsed again. This is
# the maximum of apsw: room for a hundred rows in each of five tables.
STATEMENT_PLACES = 512


def connect(path: Path) -> apsw.Connection:
    _refuse_old_sqlite()
    with public_errors():
        # Never created here: a missing file is an outage, not a new, empty store.
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=STATEMENT_PLACES)
        try:
            _configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def create(path: Path) -> None:
    """Create an empty file unless it exists, readable by its owner only; its log inherits the mode."""
    # `connect` reports what went wrong.
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb"):
            backup_files.inherit(descriptor, path.parent)


def _refuse_old_sqlite() -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < MIN_SQLITE_VERSION:
        msg = f"SQLite {apsw.sqlite_lib_version()} can corrupt WAL databases; install a current apsw wheel"
        raise RuntimeError(msg)


def _configure(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    # Only a file without pages can have it, and it lasts (see `space.py`); elsewhere it would wait for the write lock.
    if connection.execute("PRAGMA page_count").fetchall() == [(0,)]:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL").fetchall()
    ((mode,),) = connection.execute("PRAGMA journal_mode=WAL").fetchall()
    if mode != "wal":
        msg = (
            f"database.url: SQLite needs a file on a local disk; here it offers journal mode {mode!r} instead of 'wal'"
        )
        raise RuntimeError(msg)
    for pragma in (
        f"synchronous={DURABLE}",
        f"wal_autocheckpoint={CHECKPOINT_PAGES}",
        f"journal_size_limit={WAL_BYTES}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def busy() -> errors.TemporaryFailure:
    """The refusal of a caller that waited too long."""
    return errors.TemporaryFailure("the database is busy; nothing was accepted, try again", retry_after=1)


class _PublicErrors:
    """A class, because each query passes here: a generator would take five times as long."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, cause: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if cause is not None and (public := _public_error(cause)) is not None:
            raise public from cause


_PUBLIC_ERRORS: Final = _PublicErrors()


def public_errors() -> _PublicErrors:
    """Maps the errors of SQLite; a bug, such as wrong SQL, is not mapped."""
    return _PUBLIC_ERRORS


def _public_error(cause: BaseException) -> Exception | None:
    match cause:
        case apsw.ConstraintError():
            return store.ConstraintViolated(str(cause))
        case (
            apsw.BusyError()
            | apsw.LockedError()
            | apsw.ProtocolError()
            | apsw.SchemaChangeError()
            | apsw.InterruptError()
        ):
            return busy()
        case apsw.FullError():
            msg = "the disk of the database is full; nothing was accepted"
            return errors.ServiceUnavailable(msg, retry_after=30)
        case (
            apsw.IOError()
            | apsw.CantOpenError()
            | apsw.ReadOnlyError()
            | apsw.PermissionsError()
            | apsw.CorruptError()
            | apsw.NotADBError()
            | apsw.NoMemError()
            | apsw.ConnectionClosedError()
            | OSError()
        ):
            msg = "the database cannot be reached; nothing was accepted"
            return errors.ServiceUnavailable(msg, retry_after=5)
        case UnicodeEncodeError():
            return errors.InvalidRequest("a text contains an unpaired surrogate, which cannot be stored")
        case _:
            return None
