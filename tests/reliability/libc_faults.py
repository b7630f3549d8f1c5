"""Faults of the C library for one process: flushes to disk that fail or take long, a clock that jumps.

A small library (libc_faults.c) stands between the process and the C library. Nothing of the product knows of it:

    await service.start(*libc.words)
    libc.fail_syncs()
    ...
    libc.mend()

With `keep_disk` it also keeps what is on disk, and `cut_power` puts a file back to that when its process is dead.
"""

import mmap
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.browser.skip_report import skip

SOURCE: Final = Path(__file__).with_name("libc_faults.c")
# The numbers of libc_faults.c, in its order.
FAILS, DELAY_MICROSECONDS, CLOCK_NANOSECONDS, SYNCS = range(4)
NUMBER: Final = struct.Struct("=q")
HOUR_SECONDS: Final = 3600
# What a disk writes as a whole.
SECTOR_BYTES: Final = 512


class LibcFaults:
    """What happens to the processes that are started with `words`."""

    def __init__(self, library: Path, file: Path) -> None:
        file.write_bytes(bytes(4 * NUMBER.size))
        self._disk = file.with_name("disk")
        self.words: tuple[str, ...] = ("env", f"LD_PRELOAD={library}", f"LIBC_FAULTS={file}")
        with file.open("r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 0)

    def fail_syncs(self) -> None:
        """From now on every flush to disk fails with EIO."""
        self._set(FAILS, 1)

    def hold_syncs(self) -> None:
        """From now on a flush to disk waits until `mend`."""
        self.slow_syncs(HOUR_SECONDS)

    def slow_syncs(self, seconds: float) -> None:
        """From now on every flush to disk takes so much longer."""
        self._set(DELAY_MICROSECONDS, round(seconds * 1_000_000))

    def mend(self) -> None:
        """Flushes work, and take no time. The clock stays where it is."""
        self._set(FAILS, 0)
        self._set(DELAY_MICROSECONDS, 0)

    def move_clock(self, seconds: int) -> None:
        """The wall clock jumps."""
        self._set(CLOCK_NANOSECONDS, self._get(CLOCK_NANOSECONDS) + seconds * 1_000_000_000)

    @property
    def syncs(self) -> int:
        """How many flushes were asked for."""
        return self._get(SYNCS)

    def keep_disk(self, file: Path) -> None:
        """From the next start on, keep of a database what is on disk; now it is all of it."""
        self._disk.mkdir()
        shutil.copyfile(file, self._disk / file.name)
        self.words = (*self.words, f"LIBC_DISK={self._disk}")

    def cut_power(self, file: Path, *, chance: random.Random | None = None) -> None:
        """Leave of a database and its log what was flushed, and by chance some sectors of what was not."""
        Path(f"{file}-shm").unlink(missing_ok=True)
        for one in (file, Path(f"{file}-wal")):
            kept = self._disk / one.name
            flushed = kept.read_bytes() if kept.exists() else b""
            written = one.read_bytes() if one.exists() else b""
            one.write_bytes(flushed if chance is None else _mixed(flushed, written, chance))
            shutil.copyfile(one, kept)

    def close(self) -> None:
        self._map.close()

    def _set(self, number: int, value: int) -> None:
        NUMBER.pack_into(self._map, number * NUMBER.size, value)

    def _get(self, number: int) -> int:
        (value,) = NUMBER.unpack_from(self._map, number * NUMBER.size)
        return int(value)


def _mixed(flushed: bytes, written: bytes, chance: random.Random) -> bytes:
    """What is on disk when each sector that was written since the last flush may have come there or not."""
    size = chance.choice((len(flushed), len(written)))
    return b"".join(
        chance.choice((flushed, written))[place : place + SECTOR_BYTES].ljust(min(SECTOR_BYTES, size - place), b"\0")
        for place in range(0, size, SECTOR_BYTES)
    )


@pytest.fixture(scope="session")
def libc_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library, compiled once for each worker."""
    compiler = shutil.which("cc")
    if compiler is None:
        skip("flushes that fail and clocks that jump", because="there is no C compiler", remedy="install cc")
    library = tmp_path_factory.mktemp("libc") / "libc_faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)], check=True)
    return library


@pytest.fixture
def libc(libc_library: Path, tmp_path: Path) -> Iterator[LibcFaults]:
    """The test's own faults; there are none at first."""
    made = LibcFaults(libc_library, tmp_path / "libc_faults")
    yield made
    made.close()
