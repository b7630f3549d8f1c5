"""Run by test_fsync.py with libc_faults: commits and a checkpoint whose flushes fail; then the kernel drops pages.

What was written and could not be flushed is put back to what the disk had before: the worst that a kernel may do. It
prints what is in the database in the end, as whoever finds its files then reads it.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import apsw

from postroad.storage.engine import sqlite_connections


def set_failing(value: int) -> None:
    with Path(os.environ["LIBC_FAULTS"]).open("r+b", buffering=0) as faults:
        faults.write(value.to_bytes(8, sys.byteorder))


def fails_and_is_dropped(connection: apsw.Connection, statement: str, file: Path) -> bool:
    """Run a statement whose flush fails, and let the disk lose what it has written to the file."""
    before = file.read_bytes()
    set_failing(1)
    try:
        connection.execute(statement).fetchall()
    except apsw.IOError:
        with file.open("r+b") as opened:
            opened.write(before)
            opened.truncate(len(before))
        return True
    finally:
        set_failing(0)
    return False


def main() -> None:
    path = Path(sys.argv[1])
    log = Path(f"{path}-wal")
    sqlite_connections.create(path)
    connection = sqlite_connections.connect(path)
    connection.execute("CREATE TABLE kept (number INTEGER)")
    connection.execute("INSERT INTO kept VALUES (1)")
    commit_failed = fails_and_is_dropped(connection, "INSERT INTO kept VALUES (2)", log)
    connection.execute("INSERT INTO kept VALUES (3)")
    checkpoint_failed = fails_and_is_dropped(connection, "PRAGMA wal_checkpoint(TRUNCATE)", path)
    connection.execute("INSERT INTO kept VALUES (4)")
    found = []
    for state in ("before", "after"):
        if state == "after":
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        copy = path.with_name(f"{state}.db")
        shutil.copyfile(path, copy)
        shutil.copyfile(log, f"{copy}-wal")
        found.append([number for (number,) in sqlite_connections.connect(copy).execute("SELECT number FROM kept")])
    print(json.dumps([commit_failed, checkpoint_failed, log.stat().st_size, found]))  # noqa: T201 - for the test


main()
