"""Faults of the C library for one process: flushes to disk that fail or take long, a clock that jumps.

A small library (libc_faults.c) stands between the process and the C library. Nothing of the product knows of it:

    await service.start(*libc.words)
    libc.fail_syncs()
    ...
    libc.mend()
"""

import mmap
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


class LibcFaults:
    """What happens to the processes that are started with `words`."""

    def __init__(self, library: Path, file: Path) -> None:
        file.write_bytes(bytes(4 * NUMBER.size))
        self.words = ("env", f"LD_PRELOAD={library}", f"LIBC_FAULTS={file}")
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

    def close(self) -> None:
        self._map.close()

    def _set(self, number: int, value: int) -> None:
        NUMBER.pack_into(self._map, number * NUMBER.size, value)

    def _get(self, number: int) -> int:
        (value,) = NUMBER.unpack_from(self._map, number * NUMBER.size)
        return int(value)


@pytest.fixture
def libc(tmp_path: Path) -> Iterator[LibcFaults]:
    """The test's own faults; there are none at first."""
    compiler = shutil.which("cc")
    if compiler is None:
        skip("flushes that fail and clocks that jump", because="there is no C compiler", remedy="install cc")
    library = tmp_path / "libc_faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)], check=True)
    made = LibcFaults(library, tmp_path / "libc_faults")
    yield made
    made.close()
