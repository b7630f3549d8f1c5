"""A disk of two megabytes that only one process can see, and which a test can fill."""

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.browser.skip_report import skip

# Where to mount it, the database to begin with, and the command that is to see it.
SMALL_DISK: Final = (
    *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c"),
    'mount -t tmpfs -o size=2m tmpfs "$0" && cp "$1" "$0/postroad.db" && shift && exec "$@"',
)


@pytest.fixture
def small_disk(tmp_path: Path) -> Path:
    """Where to mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = [*SMALL_DISK, str(folder), "/dev/null", "true"]
    if shutil.which("unshare") is None or subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode:
        skip(
            "full disks", because="nobody may mount a disk of their own here", remedy="install unshare, or run as root"
        )
    return folder


def seen_by(pid: int, folder: Path) -> Path:
    """The folder as a process sees it: the way to its disk for everybody else."""
    return Path(f"/proc/{pid}/root{folder}")


def fill(file: Path) -> None:
    """Take every byte that the disk has left."""
    with file.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(bytes(4096)):
            pass
