"""The write-ahead log of a SQLite file: how long it is, when it is copied to the main file, and its repair.

SQLite would copy it (a checkpoint) within the commit that makes it long, and that commit would take tens of
milliseconds longer. Here another connection copies it while commits go on. SQLite begins the log again only when all
of it is copied, which commits can prevent for ever, so a long log is copied to its end between two commits.

The log is a chain: a commit counts after a power cut only if everything before it in the log is there as well. A flush
covers all of the file, so a commit that is flushed is never missing anything, unless an earlier flush failed: the
kernel then calls pages clean that are not on disk, and the next flush skips them. They are still in its cache (ext4 and
XFS), so writing the log's own content again repairs it.
"""

import os
from pathlib import Path
from typing import Final

import apsw

from postroad.storage import sqlite_connection

# At most 64 MiB, which is 16,000 pages; until then all copies are made beside the commits.
MAX_PAGES: Final = 4 * sqlite_connection.CHECKPOINT_PAGES


class WriteAheadLog:
    """The log as the connection that writes knows it."""

    def __init__(self, database: Path, writer: apsw.Connection) -> None:
        # Set when a flush has failed.
        self.is_in_doubt = False
        # All of it is copied, so the next commit begins it again and flushes its header, even that of a lease.
        self.is_copied = False
        self._path = Path(f"{database}-wal")
        self._pages = 0
        self._due_pages = sqlite_connection.CHECKPOINT_PAGES
        # In place of SQLite's own, which copies the log within the commit.
        writer.set_wal_hook(self._on_commit)

    @property
    def size(self) -> int:
        """Its octets."""
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
        self._due_pages = self._pages + sqlite_connection.CHECKPOINT_PAGES
        connection = sqlite_connection.connect(database)
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
            self._due_pages = sqlite_connection.CHECKPOINT_PAGES
        self._pages = pages
        self.is_copied = False
        return apsw.SQLITE_OK
