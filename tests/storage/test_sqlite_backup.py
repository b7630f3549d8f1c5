"""A copy of a SQLite file is consistent while others write, is one complete file, and damage is noticed."""

import asyncio
from pathlib import Path

import apsw
import pytest

from postroad.storage.engine import backup_files, open_store, sqlite_backup
from postroad.storage.engine.sqlite import SqliteStore
from postroad.storage.mail import messages
from tests.storage import samples


async def fill(store: SqliteStore, *, count: int, first: int = 0) -> None:
    """Add messages that are larger than a page."""
    async with store.transaction() as tx:
        new = [samples.message(f"em_{number}", mime=bytes(10_000)) for number in range(first, first + count)]
        await messages.insert(tx, new)


def names(folder: Path, beginning: str) -> list[str]:
    """The files whose names begin so."""
    return sorted(path.name for path in folder.glob(f"{beginning}*"))


async def test_a_copy_has_what_was_there_when_it_began(
    sqlite_store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write between two steps neither gets into the copy nor makes it begin again."""
    loop, steps = asyncio.get_running_loop(), 0

    def write_and_sync(path: Path) -> None:
        nonlocal steps
        steps += 1
        if steps < 5:
            asyncio.run_coroutine_threadsafe(fill(sqlite_store, count=1, first=1000 * steps), loop).result()

    await fill(sqlite_store, count=20)
    monkeypatch.setattr(sqlite_backup, "PAGES_PER_STEP", 30)
    monkeypatch.setattr(backup_files, "sync", write_and_sync)
    target = tmp_path / "copy"
    contents = await asyncio.to_thread(sqlite_backup.copy, sqlite_store._path, target)
    assert contents.counts["messages"] == 20
    assert 5 <= steps < 20
    assert names(tmp_path, "copy") == ["copy"]
    copied = await open_store.open_current(f"sqlite:///{target}", migrate=False)
    await copied.close()


async def test_damage_is_noticed(sqlite_store: SqliteStore, tmp_path: Path) -> None:
    await fill(sqlite_store, count=20)
    target = tmp_path / "copy"
    sqlite_backup.copy(sqlite_store._path, target)
    with target.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(b"\xff" * 200)
    with pytest.raises(backup_files.BackupError, match=r"copy is damaged: |malformed"):
        sqlite_backup.verify(target)
    target.write_bytes(target.read_bytes()[: 10 * 4096])
    with pytest.raises(backup_files.BackupError):
        sqlite_backup.verify(target)


def test_another_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other"
    connection = apsw.Connection(str(file))
    connection.execute("CREATE TABLE accounts (id)")
    connection.close()
    with pytest.raises(backup_files.BackupError, match="is not a database of Postroad: tables are missing"):
        sqlite_backup.verify(file)
    file.write_bytes(b"no database at all")
    with pytest.raises(backup_files.BackupError, match="other: "):
        sqlite_backup.verify(file)


async def test_a_database_in_use_is_not_locked_and_one_that_is_not_is_whole_without_its_log(
    sqlite_store: SqliteStore,
) -> None:
    path = sqlite_store._path
    await fill(sqlite_store, count=1)
    with pytest.raises(backup_files.BackupError, match="is in use; stop the service"), sqlite_backup.locked(path):
        pass
    await sqlite_store.close()
    with sqlite_backup.locked(path):
        assert names(path.parent, f"{path.name}-wal") == []
        with pytest.raises(apsw.BusyError):
            apsw.Connection(str(path)).execute("SELECT * FROM accounts").fetchall()
        sqlite_backup.move_aside(path, path.with_name("aside"))
    assert sqlite_backup.verify(path.with_name("aside")).counts["messages"] == 1
    assert names(path.parent, path.name) == []


async def test_a_database_with_an_account_or_one_that_cannot_be_read_is_not_empty(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    assert sqlite_backup.is_empty(sqlite_store._path)
    async with sqlite_store.transaction() as tx:
        await samples.add_account(tx)
    assert not sqlite_backup.is_empty(sqlite_store._path)
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no database")
    assert not sqlite_backup.is_empty(damaged)
    with sqlite_backup.locked(damaged):
        sqlite_backup.move_aside(damaged, tmp_path / "aside")
    assert (tmp_path / "aside").read_bytes() == b"no database"
    damaged.write_bytes(b"")
    assert sqlite_backup.is_empty(damaged)
