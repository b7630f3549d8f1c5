"""What only a file can suffer: full disks, locks of other processes, kills, scans that hold the log, and threads."""

import asyncio
import contextlib
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from postroad import errors
from postroad.storage.engine import open_store, sqlite, sqlite_connections
from postroad.storage.engine.sqlite import SqliteStore
from postroad.storage.mail import messages
from postroad.storage.people import credentials
from tests.storage import samples

pytestmark = pytest.mark.usefixtures("real_disk")

# Another process that takes the write lock (or the whole file), says so, and keeps it until its input ends.
HOLD = """
import sys, apsw
connection = apsw.Connection(sys.argv[1])
for statement in sys.argv[2:]:
    connection.execute(statement).fetchall()
print("held", flush=True)
sys.stdin.read()
"""

# Commits message after message, and says so after each commit.
COMMIT_FOREVER = """
import asyncio, sys
from postroad.storage.engine import open_store
from postroad.storage.mail import messages
from tests.storage import samples

async def main():
    store = await open_store.open_current(sys.argv[1], migrate=True)
    for number in range(100_000):
        batch = [samples.message(f"em_{number}_{place}", mime=bytes(3000)) for place in range(3)]
        async with store.transaction() as tx:
            await messages.insert(tx, batch)
        print(number, flush=True)

asyncio.run(main())
"""

# Meets a limit on the size of files at COMMIT and within a statement, and goes on when it is lifted.
FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from postroad import errors
from postroad.storage.engine import open_store
from postroad.storage.mail import messages
from tests.storage import samples

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

async def write(store, name, size):
    async with store.transaction() as tx:
        await messages.insert(tx, [samples.message(name, mime=bytes(size))])

async def main():
    store = await open_store.open_current("sqlite:///" + sys.argv[1], migrate=True)
    await write(store, "em_before", 10)
    log = Path(sys.argv[1] + "-wal").stat().st_size
    for size in (100, 20_000_000):
        limit(log)
        try:
            await write(store, f"em_{size}", size)
        except errors.ServiceUnavailable:
            print("refused", await samples.count(store, "messages"), await samples.count(store, "bodies"))
        limit(resource.RLIM_INFINITY)
    await write(store, "em_after", 10)
    print("stored", await samples.count(store, "messages"), await samples.count(store, "bodies"))
    await store.close()

asyncio.run(main())
"""


@contextlib.contextmanager
def held_by_another_process(path: Path, *statements: str) -> Iterator[None]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), *statements], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        yield
        process.communicate()


def file_of(store: SqliteStore) -> Path:
    return store._path


async def bump(store: SqliteStore) -> None:
    async with store.transaction() as tx:
        await credentials.bump_access_version(tx)


async def version(store: SqliteStore) -> int:
    async with store.reading() as tx:
        return await credentials.access_version(tx)


async def test_settings_are_in_force_on_every_connection(sqlite_store: SqliteStore) -> None:
    samples.teach(
        sqlite_store,
        journal="PRAGMA journal_mode",
        flush="PRAGMA synchronous",
        checkpoint="PRAGMA wal_autocheckpoint",
        size="PRAGMA journal_size_limit",
        busy="PRAGMA busy_timeout",
    )
    async with sqlite_store.transaction() as tx, sqlite_store.reading() as look, sqlite_store.scanning() as scan:
        for view in (tx, look, scan):
            assert await view.fetch("test.journal") == [("wal",)]
            assert await view.fetch("test.flush") == [(2,)]  # FULL
            assert await view.fetch("test.size") == [(sqlite_connections.WAL_BYTES,)]
        assert [(await view.fetch("test.checkpoint"))[0][0] for view in (tx, look, scan)] == [0, 4000, 4000]
        # What runs on the event loop must not sleep there, and does not copy the log either.
        assert [(await view.fetch("test.busy"))[0][0] for view in (tx, look, scan)] == [0, 100, 5000]


async def test_a_full_file_refuses_and_works_again_when_there_is_room(sqlite_store: SqliteStore) -> None:
    writer = sqlite_store._writer
    pages = writer.pragma("page_count")
    writer.pragma("max_page_count", pages + 3)

    async def write(name: str) -> None:
        async with sqlite_store.transaction() as tx:
            await messages.insert(tx, [samples.message(name, mime=bytes(100_000))])

    for _ in range(3):
        with pytest.raises(errors.ServiceUnavailable) as refusal:
            await write("em_1")
        assert isinstance(refusal.value.__cause__, apsw.FullError)
    assert await samples.count(sqlite_store, "messages") == 0
    writer.pragma("max_page_count", 1_000_000)
    await write("em_1")
    assert await samples.count(sqlite_store, "bodies") == 1


async def test_a_disk_that_takes_no_more_refuses_at_any_moment_and_recovers(tmp_path: Path) -> None:
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "postroad.db")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["refused 1 1", "refused 1 1", "stored 2 2"]


async def test_a_write_lock_of_another_process_is_waited_for(sqlite_store: SqliteStore) -> None:
    with held_by_another_process(file_of(sqlite_store), "BEGIN IMMEDIATE"):
        waiting = asyncio.create_task(bump(sqlite_store))
        for _ in range(20):  # the event loop goes on meanwhile
            await asyncio.sleep(0.01)
            assert await version(sqlite_store) == 0
        assert not waiting.done()
    await waiting
    assert await version(sqlite_store) == 1


async def test_a_write_lock_held_too_long_is_a_temporary_failure(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.1)
    with held_by_another_process(file_of(sqlite_store), "BEGIN IMMEDIATE"):
        for _ in range(2):
            with pytest.raises(errors.TemporaryFailure):
                await bump(sqlite_store)
    await bump(sqlite_store)
    assert await version(sqlite_store) == 1


async def test_cancelled_while_waiting_for_another_process_the_store_stays_usable(sqlite_store: SqliteStore) -> None:
    with held_by_another_process(file_of(sqlite_store), "BEGIN IMMEDIATE"):
        waiting = [asyncio.create_task(bump(sqlite_store)) for _ in range(3)]
        await asyncio.sleep(0.05)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        assert all(task.cancelled() for task in waiting)
    await bump(sqlite_store)
    assert await version(sqlite_store) == 1
    with held_by_another_process(file_of(sqlite_store), "BEGIN IMMEDIATE"):
        pass  # nothing of ours holds the lock


async def test_a_commit_that_is_cancelled_is_done_before_the_connection_is_used_again(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit hangs in its thread while its caller is cancelled three times."""
    loop = asyncio.get_running_loop()
    committing, go_on = asyncio.Event(), asyncio.Event()
    in_thread = sqlite._in_thread

    async def slowly(thread: object, work: object) -> None:
        def wait_and_work() -> None:
            loop.call_soon_threadsafe(committing.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(30)
            work()  # type: ignore[operator]

        await in_thread(thread, wait_and_work)  # type: ignore[arg-type]

    monkeypatch.setattr(sqlite, "_in_thread", slowly)
    first = asyncio.create_task(bump(sqlite_store))
    await committing.wait()
    second = asyncio.create_task(bump(sqlite_store))
    for _ in range(3):
        first.cancel()
        await asyncio.sleep(0.01)
    assert not first.done()
    go_on.set()
    await asyncio.wait([first, second])
    assert first.cancelled()
    assert second.exception() is None
    assert await version(sqlite_store) == 2  # a commit on its way to disk cannot be called back


async def test_a_scan_that_takes_too_long_is_interrupted(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.teach(sqlite_store, slow=samples.SLOW)

    async def scan() -> None:
        async with sqlite_store.scanning() as tx:
            await tx.fetch("test.slow")

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "SCAN_SECONDS", 0.05)
        for _ in range(6):
            with pytest.raises(errors.TemporaryFailure):
                await scan()
    async with sqlite_store.scanning() as tx:
        assert await credentials.access_version(tx) == 0


async def test_a_cancelled_scan_keeps_its_connection_until_its_thread_is_done(sqlite_store: SqliteStore) -> None:
    samples.teach(sqlite_store, slow=samples.SLOW)

    async def scan() -> None:
        async with sqlite_store.scanning() as tx:
            await tx.fetch("test.slow")

    for _ in range(10):
        task = asyncio.create_task(scan())
        await asyncio.sleep(random.Random(3).random() / 100)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        # All of them at once: whichever connection comes back, no thread may still be at work on it.
        async with contextlib.AsyncExitStack() as stack:
            scans = [sqlite_store.scanning(f"acc_{number}") for number in range(sqlite.SCANS)]
            views = [await stack.enter_async_context(scan) for scan in scans]
            assert await asyncio.gather(*[credentials.access_version(view) for view in views]) == [0] * sqlite.SCANS


async def test_whoever_waits_too_long_for_a_turn_gets_an_error(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "SLOT_WAIT_SECONDS", 0.05)
    async with sqlite_store.transaction():
        with pytest.raises(errors.TemporaryFailure):
            await bump(sqlite_store)
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(sqlite.LOOKUPS):
            await stack.enter_async_context(sqlite_store.reading())
        with pytest.raises(errors.TemporaryFailure):
            await version(sqlite_store)
    await bump(sqlite_store)
    assert await version(sqlite_store) == 1


async def test_a_connection_on_which_a_view_failed_is_not_used_again(sqlite_store: SqliteStore) -> None:
    samples.teach(sqlite_store, wrong="SELEKT")
    async with sqlite_store.reading() as tx:
        await credentials.access_version(tx)
    (connection,) = sqlite_store._lookups.idle
    with pytest.raises(apsw.SQLError):
        async with sqlite_store.reading() as tx:
            await tx.fetch("test.wrong")
    assert sqlite_store._lookups.idle == []
    with pytest.raises(apsw.ConnectionClosedError):
        connection.execute("SELECT 1")
    assert await version(sqlite_store) == 0


async def test_what_is_still_in_use_when_a_store_is_closed_may_end_and_is_let_go_then(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "CLOSE_SECONDS", 0.05)
    async with sqlite_store.transaction() as tx, sqlite_store.reading() as look, sqlite_store.scanning() as scan:
        await asyncio.wait_for(sqlite_store.close(), 60)
        await credentials.bump_access_version(tx)
        assert await credentials.access_version(look) == await credentials.access_version(scan) == 0
    assert sqlite_store._lookups.idle == sqlite_store._scans.idle == []
    with pytest.raises(errors.ServiceUnavailable):
        await bump(sqlite_store)
    with contextlib.closing(sqlite_connections.connect(file_of(sqlite_store))) as connection:
        assert connection.execute("SELECT version FROM access_version").fetchall() == [(1,)]


async def test_a_file_that_vanished_is_an_outage_and_not_an_empty_store(sqlite_store: SqliteStore) -> None:
    file_of(sqlite_store).rename(file_of(sqlite_store).with_suffix(".moved"))
    with pytest.raises(errors.ServiceUnavailable):
        await samples.scan(sqlite_store, "access_version.version")
    assert not file_of(sqlite_store).exists()
    file_of(sqlite_store).with_suffix(".moved").rename(file_of(sqlite_store))
    assert await samples.scan(sqlite_store, "access_version.version") == [(0,)]


async def test_scans_that_overlap_without_end_do_not_let_the_log_grow_without_end(
    sqlite_store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each scan outlasts some writes, so there is always one. Only our own doing can shorten a log this small."""
    monkeypatch.setattr(sqlite, "MAX_WAL_BYTES", 2_000_000)
    writes, written = 0, asyncio.Condition()

    async def scan() -> None:
        while True:
            async with sqlite_store.scanning() as tx:
                await credentials.access_version(tx)
                for _ in range(3):
                    async with written:
                        await written.wait()

    scans = [asyncio.create_task(scan()) for _ in range(3)]
    size, times_shorter = 0, 0
    while times_shorter < 3 and writes < 250:
        async with sqlite_store.transaction() as tx:
            await messages.insert(tx, [samples.message(f"em_{writes}_{part}", mime=bytes(50_000)) for part in range(4)])
        async with written:
            writes += 1
            written.notify_all()
        before, size = size, sqlite_store._log.size
        times_shorter += size < before
    for task in scans:
        task.cancel()
    await asyncio.wait(scans)
    assert all(task.cancelled() for task in scans)
    assert times_shorter == 3
    assert await samples.count(sqlite_store, "bodies") == writes * 4


async def test_commits_in_their_thread_and_look_ups_on_the_loop_do_not_disturb_each_other(
    sqlite_store: SqliteStore,
) -> None:
    async def write(number: int) -> None:
        async with sqlite_store.transaction() as tx:
            await credentials.bump_access_version(tx)
            await messages.insert(tx, [samples.message(f"em_{number}")])

    async def look() -> None:
        async with sqlite_store.reading() as tx:
            before = await credentials.access_version(tx)
            await asyncio.sleep(0)
            assert await credentials.access_version(tx) == before

    async def scan() -> None:
        samples.teach(sqlite_store, both="SELECT version, (SELECT COUNT(*) FROM messages) FROM access_version")
        async with sqlite_store.scanning() as tx:
            row = await tx.fetch_one("test.both")
            assert row is not None
            assert row[0] == row[1]  # one transaction changes both

    await asyncio.gather(*[task for number in range(100) for task in (write(number), look(), scan())])
    assert await version(sqlite_store) == 100


def acknowledged_before_a_kill(path: Path, commits: int) -> int:
    """The number of the last commit that a process reported before it was killed."""
    command = [sys.executable, "-c", COMMIT_FOREVER, f"sqlite:///{path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        reported = [process.stdout.readline() for _ in range(commits)]
        process.kill()
        reported += [line for line in process.stdout if line.endswith(b"\n")]
    return int(reported[-1])


async def test_after_a_kill_every_acknowledged_commit_is_there_and_no_other_is_half_there(tmp_path: Path) -> None:
    path = tmp_path / "postroad.db"
    for attempt in range(3):
        path.unlink(missing_ok=True)
        acknowledged = acknowledged_before_a_kill(path, 5 + 7 * attempt)
        store = await open_store.open_current(f"sqlite:///{path}", migrate=False)
        stored = await samples.count(store, "messages")
        assert stored % 3 == 0
        assert stored // 3 in (
            acknowledged + 1,
            acknowledged + 2,
        )  # the last commit may not have been reported any more
        assert await samples.count(store, "bodies") == stored
        samples.teach(store, integrity="PRAGMA integrity_check")
        async with store.scanning() as tx:
            assert await tx.fetch("test.integrity") == [("ok",)]
        await store.close()


async def test_a_lease_does_not_wait_for_the_disk_and_the_next_transaction_does(sqlite_store: SqliteStore) -> None:
    samples.teach(sqlite_store, flush="PRAGMA synchronous")
    for _ in range(2):
        async with sqlite_store.leasing() as tx:
            await credentials.bump_access_version(tx)
            assert await tx.fetch("test.flush") == [(1,)]  # NORMAL
        async with sqlite_store.transaction() as tx:
            await credentials.bump_access_version(tx)
            assert await tx.fetch("test.flush") == [(2,)]  # FULL
    assert await version(sqlite_store) == 4


async def test_a_lease_lets_the_transactions_that_wait_go_first_but_not_again_and_again(
    sqlite_store: SqliteStore,
) -> None:
    order: list[str] = []

    async def lease() -> None:
        async with sqlite_store.leasing():
            order.append("lease")

    async def write(name: str) -> None:
        async with sqlite_store.transaction() as tx:
            await credentials.bump_access_version(tx)
            order.append(name)
            if name == "first":  # the lease is first in line for the slot, and lets it pass
                tasks.append(asyncio.create_task(write("third")))

    async with sqlite_store.transaction():
        tasks = [asyncio.create_task(work) for work in (lease(), write("first"), write("second"))]
        await asyncio.sleep(0)
    while not all(task.done() for task in tasks):
        await asyncio.wait(tasks)
    assert order == ["first", "second", "lease", "third"]
