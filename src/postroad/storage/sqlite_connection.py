"""A connection to a SQLite file: how it is opened, and what its errors mean to callers.

WAL with `synchronous=FULL`: a commit returns after its pages are on disk. A file that cannot have a WAL, such as one
in memory, is refused, and so is a SQLite older than 3.51.3: those can corrupt a WAL database when a checkpoint meets a
reset. The `apsw` wheel brings a SQLite of its own.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import apsw

from postroad import errors
from postroad.storage import store

MIN_SQLITE_VERSION = (3, 51, 3)
# How long to wait for another process that holds a lock on the file.
BUSY_SECONDS = 5.0
# 16 MiB of log between checkpoints: fewer, larger writes to the main file than the default of 4 MiB.
CHECKPOINT_PAGES = 4_000
# A log that grew beyond this, behind a long scan, gives the room back when it is used again from its start.
WAL_BYTES = 64 * 1024 * 1024
# A ring: each row of a batch moves its statement on by one place, and what is overtaken must be parsed again. This is
# the most that apsw allows: room for a hundred rows in each of five tables.
STATEMENT_PLACES = 512


def connect(path: Path) -> apsw.Connection:
    """A connection with every setting in force, to a file that exists."""
    _refuse_old_sqlite()
    with public_errors():
        # Never created here: a file that has vanished is an outage, not a new and empty store.
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE, statementcachesize=STATEMENT_PLACES)
        try:
            _configure(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def create(path: Path) -> None:
    """Make an empty file unless there is one, for its owner's eyes only; its log inherits that."""
    # What stands in the way, `connect` will tell.
    with contextlib.suppress(OSError):
        path.touch(mode=0o600, exist_ok=True)


def _refuse_old_sqlite() -> None:
    version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
    if version < MIN_SQLITE_VERSION:
        msg = f"SQLite {apsw.sqlite_lib_version()} can corrupt WAL databases; install a current apsw wheel"
        raise RuntimeError(msg)


def _configure(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    ((mode,),) = connection.execute("PRAGMA journal_mode=WAL").fetchall()
    if mode != "wal":
        msg = f"the store needs a file on a local disk: SQLite offers journal mode {mode!r} here, not 'wal'"
        raise RuntimeError(msg)
    for pragma in ("synchronous=FULL", f"wal_autocheckpoint={CHECKPOINT_PAGES}", f"journal_size_limit={WAL_BYTES}"):
        connection.execute(f"PRAGMA {pragma}").fetchall()


def busy() -> errors.TemporaryFailure:
    """The refusal of whoever waited too long."""
    return errors.TemporaryFailure("the store is busy; nothing was accepted, try again", retry_after=1)


@contextlib.contextmanager
def public_errors() -> Iterator[None]:
    """Turns the errors of SQLite into ours; a bug, such as wrong SQL, stays what it is."""
    try:
        yield
    except apsw.ConstraintError as cause:
        raise store.ConstraintViolated(str(cause)) from cause
    except (apsw.BusyError, apsw.LockedError, apsw.ProtocolError, apsw.SchemaChangeError, apsw.InterruptError) as cause:
        raise busy() from cause
    except apsw.FullError as cause:
        msg = "the disk of the store is full; nothing was accepted"
        raise errors.ServiceUnavailable(msg, retry_after=30) from cause
    except (
        apsw.IOError,
        apsw.CantOpenError,
        apsw.ReadOnlyError,
        apsw.PermissionsError,
        apsw.CorruptError,
        apsw.NotADBError,
        apsw.NoMemError,
        apsw.ConnectionClosedError,
    ) as cause:
        msg = "the store cannot be reached; nothing was accepted"
        raise errors.ServiceUnavailable(msg, retry_after=5) from cause
    except UnicodeEncodeError as cause:
        msg = "a text contains half of a surrogate pair, which cannot be stored"
        raise errors.InvalidRequest(msg) from cause
