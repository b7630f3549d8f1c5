"""The log of a file is copied beside commits, and to its end when it is long. Small limits stand for the real ones."""

import asyncio
from pathlib import Path

import apsw
import pytest

from postroad import errors
from postroad.storage.engine import sqlite, sqlite_connections
from postroad.storage.engine.sqlite import SqliteStore

# A commit of that many octets is 50 pages.
OCTETS = 200_000
PAGES = 50


async def write(store: SqliteStore, number: int) -> int:
    """Commit; returns how many pages the log has then."""
    async with store.transaction() as tx:
        await tx.execute("test.insert", number, bytes(OCTETS))
    return store._log._pages


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    monkeypatch.setattr(sqlite_connections, "CHECKPOINT_PAGES", 2 * PAGES)
    monkeypatch.setattr(sqlite, "MAX_PAGES", 6 * PAGES)
    opened = SqliteStore(tmp_path / "postroad.db")
    async with opened.transaction() as tx:
        await tx.run_script("CREATE TABLE test (number INTEGER, content BLOB)")
    opened._statements["test.insert"] = "INSERT INTO test VALUES (?1, ?2)"
    return opened


async def test_a_log_that_is_copied_while_nobody_commits_begins_again(store: SqliteStore) -> None:
    before = [await write(store, number) for number in range(2)]
    assert store._copying is not None
    await asyncio.wait([store._copying])
    assert await write(store, 2) < before[-1]
    await store.close()


async def test_a_log_that_commits_keep_from_beginning_again_is_copied_between_two_of_them(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy beside commits never catches up."""
    monkeypatch.setattr(store._log, "copy_beside_commits", lambda _path: None)
    pages = [await write(store, number) for number in range(6)]
    assert pages == sorted(pages)
    assert store._log.is_long
    assert store._copying is not None
    await asyncio.wait([store._copying])
    assert await write(store, 6) < pages[-1]
    await store.close()


async def test_a_copy_that_fails_is_tried_again_and_disturbs_nobody(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: Path) -> None:
        raise errors.ServiceUnavailable("the disk is away")

    with monkeypatch.context() as patch:
        patch.setattr(store._log, "copy_beside_commits", fail)
        before = [await write(store, number) for number in range(3)]
        assert store._copying is not None
        await asyncio.wait([store._copying])
    before.append(await write(store, 3))
    await asyncio.wait([store._copying])
    assert await write(store, 4) < before[-1]
    await store.close()


async def test_a_lease_that_begins_the_log_again_is_committed_in_a_thread(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its header is flushed whatever the transaction is."""
    committed: list[bool] = []
    commit = store._commit

    async def noted() -> None:
        committed.append(store._log.is_copied)
        await commit()

    monkeypatch.setattr(store, "_commit", noted)
    for number in range(2):
        await write(store, number)
    assert store._copying is not None
    await asyncio.wait([store._copying])
    for _ in range(2):
        async with store.leasing() as tx:
            await tx.execute("test.insert", 0, b"")
    assert committed == [False, False, True]
    await store.close()


async def test_after_a_checkpoint_that_could_not_flush_the_log_is_written_again(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells a connection once that a flush failed; its next one would succeed without the lost pages."""

    async def fail(_thread: object, _work: object) -> None:
        raise errors.ServiceUnavailable("the disk is away")

    await write(store, 0)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "_in_thread", fail)
        with pytest.raises(errors.ServiceUnavailable):
            await store._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
    before = store._log.is_in_doubt
    await write(store, 1)
    assert (before, store._log.is_in_doubt) == (True, False)
    await store.close()
