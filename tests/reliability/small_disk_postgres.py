"""A PostgreSQL server on a small disk, which a test can fill: its data and its log are there.

A process holds the disk, in a namespace of its own, while the server crashes and is started again; everybody else finds
it through that process. It ends with whoever started it, and the disk with it.
"""

import contextlib
import subprocess
from pathlib import Path
from typing import Final

from tests.browser.skip_report import skip
from tests.postgres_server import TIMEOUT_SECONDS
from tests.reliability import crashable_stores, disks

# A new server takes 40 MB; then come our tables, and one more piece of the server's log.
SIZE: Final = "96m"
# Root is only called so there, and yet PostgreSQL does not run as root: whoever mounts keeps their own name.
HOLD: Final = (
    *("/usr/bin/env", "unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-c"),
    f'mount -t tmpfs -o size={SIZE} tmpfs "$0" && echo mounted && exec cat',
)
MOUNTED: Final = b"mounted\n"
# The server's log is in pieces: one is ended, so that the next one has to be made.
NEXT_PIECE: Final = "SELECT pg_logical_emit_message(false, 'test', 'something to write'), pg_switch_wal()"
MAX_PIECES: Final = 10


class SmallDiskServer(crashable_stores.CrashingServer):
    """The server, and its disk."""

    _holder: subprocess.Popen[bytes] | None = None

    def fill(self) -> None:
        """Take every byte that the disk has left. Only those may write there whose name is known there."""
        self._run(["/bin/sh", "-c", f'cat /dev/zero > "{self._filler}"; true'])

    def make_room(self) -> None:
        """Give it back."""
        self._run(["/bin/rm", str(self._filler)])

    @property
    def is_alive(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def panic(self) -> None:
        """Let it write its log when the disk is full: it breaks down, cannot mend itself either, and is shut down."""
        with contextlib.suppress(RuntimeError):
            for _ in range(MAX_PIECES):
                self.execute(NEXT_PIECE)
        assert "PANIC:  could not write to file" in (self._folder / "log").read_text()
        self.crash()

    def close(self) -> None:
        super().close()
        if self._holder is not None:
            self._holder.communicate(timeout=TIMEOUT_SECONDS)

    @property
    def _place(self) -> Path:
        return self._folder / "disk"

    @property
    def _disk(self) -> Path:
        assert self._holder is not None
        return disks.seen_by(self._holder.pid, self._place)

    @property
    def _data(self) -> Path:
        return self._disk / "data"

    @property
    def _filler(self) -> Path:
        return self._disk / "filler"

    def _initialise(self) -> None:
        self._place.mkdir()
        self._lend(self._place)
        self._holder = self._spawn([*HOLD, str(self._place)], output=subprocess.PIPE, stdin=subprocess.PIPE)
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != MOUNTED:
            skip(
                "full disks of PostgreSQL",
                because="nobody may mount a disk of their own here",
                remedy="install unshare, and allow namespaces of users",
            )
        super()._initialise()
