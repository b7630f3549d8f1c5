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

from tests.reliability import service_process, sinks, whole_service
from tests.reliability.libc_faults import LibcFaults


def is_intact(url: str) -> bool:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


async def test_what_cannot_be_flushed_is_not_acknowledged_and_what_was_sent_is_not_lost(
    clean_sqlite_url: str, tmp_path: Path, libc: LibcFaults
) -> None:
    async with whole_service.running_service(tmp_path, clean_sqlite_url, *libc.words) as whole:
        await whole.accept("first", "second")
        gate = await whole.under_way("in flight", "reported")
        asked = libc.syncs
        libc.fail_syncs()
        await whole.refuse("third", "fourth", "third", "fourth")
        assert libc.syncs > asked
        whole.sink.release(sinks.Point.CONTENT)
        gate.open()
        await whole.says("results_recording_deferred")
        await whole.says("webhook_result_recording_deferred")
        # Readers go on, and whoever balances load hears of it.
        assert (await whole.client.get(f"{whole.service.base_url}/healthz")).status_code == 200
        assert (await whole.client.get(f"{whole.service.base_url}/readyz")).status_code == 503
        assert (await whole.post("first")).headers["idempotent-replayed"] == "true"

        libc.mend()
        await whole.accept("third", "fourth")
        assert (await whole.client.get(f"{whole.service.base_url}/readyz")).status_code == 200
        await whole.finished()
        # What is on disk now is what was acknowledged, also for whoever finds it after a power cut.
        await whole.service.kill()
        assert is_intact(clean_sqlite_url)
        await whole.service.start()
    await whole.prove()


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
