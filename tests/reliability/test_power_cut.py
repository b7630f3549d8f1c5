"""A power cut on SQLite: what was acknowledged or recorded is there, and a lease is the only thing that can be gone.

A lease is not flushed (docs/decisions/0021-latency.md). The process is killed, and its files are put back to what the
disk has: what was flushed, and perhaps some sectors of what was not.
"""

import asyncio
import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest

from tests.reliability import profile, service_process, sinks, whole_service
from tests.reliability.libc_faults import LibcFaults

# Every second one leaves some sectors of what was not flushed.
CUTS = 4 if profile.IS_LONG else 2


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    """What is in a database; in a copy, because whoever closes the file itself changes it."""
    with tempfile.TemporaryDirectory() as folder:
        for one in (file, Path(f"{file}-wal")):
            shutil.copy(one, folder)
        with contextlib.closing(apsw.Connection(str(Path(folder, file.name)))) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return list(connection.execute(query))


@pytest.mark.parametrize(
    "words,done,kept",
    [
        ("ttl", "ttl", [0, 1]),  # nobody but the dead worker knew of the lease
        ("llt", "llt", [0, 1, 2]),  # a transaction is never there without the leases before it
        ("tlr", "tl-", [0]),
        # The kernel calls what a failed flush has not written clean, and the next flush leaves it out.
        ("lrtl", "l-t", [0, 2]),
        ("tlcl", "tlcl", [0, 1]),  # a copy flushes the log first
        ("tlctl", "tlctl", [0, 1, 3]),
    ],
)
def test_a_power_cut_takes_only_leases_that_no_transaction_followed(
    tmp_path: Path, libc: LibcFaults, words: str, done: str, kept: list[int]
) -> None:
    file = tmp_path / "kept.db"
    file.touch()
    libc.keep_disk(file)
    command = [*libc.words, sys.executable, "-m", "tests.reliability.power_cut", str(file), *words]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=service_process.TIMEOUT_SECONDS, check=False)
    assert ran.stdout.startswith(done), ran.stderr
    libc.cut_power(file)
    assert rows(file, "SELECT number FROM kept ORDER BY number") == [(number,) for number in kept]


def test_the_main_file_is_never_ahead_of_a_log_that_is_in_doubt(tmp_path: Path, libc: LibcFaults) -> None:
    file = tmp_path / "kept.db"
    file.touch()
    libc.keep_disk(file)
    command = [*libc.words, sys.executable, "-m", "tests.reliability.power_cut", str(file), *"tctlrlc"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=service_process.TIMEOUT_SECONDS, check=False)
    assert ran.stdout.startswith("tctl-lc"), ran.stderr
    libc.cut_power(file)
    assert rows(file, "SELECT number FROM kept ORDER BY number") == [(0,), (2,)]
    # Without its log it has what the first copy gave it, and nothing of the leases that the log has lost.
    Path(f"{file}-wal").write_bytes(b"")
    assert rows(file, "SELECT number FROM kept ORDER BY number") == [(0,)]


async def test_mail_whose_lease_is_lost_is_delivered_and_what_was_recorded_stays_recorded(
    clean_sqlite_url: str, tmp_path: Path, libc: LibcFaults
) -> None:
    file, chance = file_of(clean_sqlite_url), random.Random(profile.SEEDS[-1])
    async with whole_service.configured_service(tmp_path, clean_sqlite_url) as whole:
        libc.keep_disk(file)
        doubts: dict[str, int] = {}
        for cut in range(CUTS):
            await whole.service.start(*libc.words)
            await whole.accept(f"recorded {cut}", f"recorded too {cut}")
            await whole.finished()
            copies = list(whole.sink.recipients)
            whole.sink.hold(sinks.Point.CONTENT)
            await whole.accept(f"under way {cut}")
            await whole.sink.waiting(sinks.Point.CONTENT)
            await whole.accept(f"accepted {cut}")
            await asyncio.sleep(chance.uniform(0, 0.05))
            await whole.service.kill()
            libc.cut_power(file, chance=chance if cut % 2 else None)
            whole.sink.release(sinks.Point.CONTENT)
            # Only what was not recorded may be sent again.
            waiting = {str(address) for (address,) in rows(file, "SELECT email FROM queue")}
            assert waiting == {whole_service.address(f"{what} {cut}") for what in ("under way", "accepted")}
            assert not waiting & set(copies)
            doubts |= dict.fromkeys(waiting, 1)
        await whole.service.start(*libc.words)
        await whole.finished()
        assert await whole.service.stop() == 0
        assert whole.service.errors() == []
        await whole.prove(doubts=doubts)
