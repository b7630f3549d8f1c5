"""A disk that cannot flush: no mail is acknowledged that was not flushed, and the service goes on when it can again.

A failed flush may not simply be repeated: the kernel can have dropped the pages and call the next one a success. SQLite
does not. A commit whose flush failed is undone, and the next one writes its frames again; a checkpoint whose flush
failed has not happened, and the log keeps its pages. So there is nothing to mend by a restart.
"""

import json
import subprocess
import sys
from pathlib import Path

import apsw

from tests.reliability import service_process, whole_service
from tests.reliability.libc_faults import LibcFaults


def is_intact(url: str) -> bool:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


async def test_a_power_cut_after_a_failed_flush_leaves_a_message_once_or_not_at_all(
    clean_sqlite_url: str, tmp_path: Path, libc: LibcFaults
) -> None:
    async with whole_service.running_service(tmp_path, clean_sqlite_url, *libc.words) as whole:
        await whole.accept("before")
        await whole.finished()
        libc.fail_syncs()
        service_process.check_refusal(await whole.post("in doubt"), 503, "service_unavailable")
        # The frames of the refused commit may be in the log as if it had come through; nobody knows which of them.
        await whole.service.kill()
        libc.mend()
        await whole.service.start(*libc.words)
        assert is_intact(clean_sqlite_url)
        await whole.accept("in doubt")
    await whole.prove()


def test_sqlite_writes_again_what_a_failed_flush_may_have_lost(tmp_path: Path, libc: LibcFaults) -> None:
    words = [*libc.words, sys.executable, "-m", "tests.reliability.failing_fsync", str(tmp_path / "kept.db")]
    printed = subprocess.run(words, check=True, capture_output=True, timeout=service_process.TIMEOUT_SECONDS).stdout
    commit_failed, checkpoint_failed, log_bytes, found = json.loads(printed)
    assert commit_failed
    assert checkpoint_failed
    # By the log, and when the checkpoint has come through by the main file alone.
    assert found == [[1, 3, 4], [1, 3, 4]]
    assert log_bytes == 0
