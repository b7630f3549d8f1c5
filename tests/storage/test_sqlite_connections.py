"""How a SQLite file is opened, and what is refused."""

import contextlib
import stat
import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from postroad import errors
from postroad.storage.engine import sqlite_connections
from postroad.storage.engine.sqlite import SqliteStore

OPEN = "import sys, pathlib; from postroad.storage.engine import sqlite; sqlite.SqliteStore(pathlib.Path(sys.argv[1]))"


@pytest.mark.parametrize("version", ["3.51.2", "3.9.99", "3.40.1", "2.99.0"])
def test_a_sqlite_that_can_corrupt_a_log_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    with pytest.raises(RuntimeError, match=version):
        SqliteStore(tmp_path / "postroad.db")


@pytest.mark.parametrize("version", ["3.51.3", "3.100.0", "4.0.0"])
def test_a_sqlite_that_is_new_enough_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    path = tmp_path / "postroad.db"
    sqlite_connections.create(path)
    sqlite_connections.connect(path).close()


def test_a_file_in_a_folder_that_is_not_there_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(errors.ServiceUnavailable):
        SqliteStore(tmp_path / "missing" / "postroad.db")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(errors.ServiceUnavailable):
        SqliteStore(tmp_path)


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear operator, this is not a database. " * 100)
    before = path.read_bytes()
    with pytest.raises(errors.ServiceUnavailable):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_database_that_cannot_have_a_log_is_refused() -> None:
    with pytest.raises(RuntimeError, match="'memory'"):
        sqlite_connections.connect(Path(":memory:"))


async def test_a_name_that_means_something_to_sqlite_is_a_file_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(Path(":memory:"))
    await store.close()
    assert (tmp_path / ":memory:").is_file()


def test_only_the_owner_may_read_what_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "postroad.db"
    sqlite_connections.create(path)
    with contextlib.closing(sqlite_connections.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        files = sorted(tmp_path.iterdir())
        assert [file.name for file in files] == ["postroad.db", "postroad.db-shm", "postroad.db-wal"]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_many_processes_may_make_the_same_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "postroad.db"
    processes = [subprocess.Popen([sys.executable, "-c", OPEN, str(path)]) for _ in range(6)]
    assert [process.wait(60) for process in processes] == [0] * 6


def test_the_lock_of_another_connection_while_opening_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connections, "BUSY_SECONDS", 0.1)
    path = tmp_path / "postroad.db"
    with contextlib.closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN EXCLUSIVE; CREATE TABLE t (x)")
        with pytest.raises(errors.TemporaryFailure):
            SqliteStore(path)
        other.execute("COMMIT")
        sqlite_connections.connect(path).close()


def test_a_statement_is_not_parsed_again_after_a_large_batch_of_another(tmp_path: Path) -> None:
    path = tmp_path / "postroad.db"
    sqlite_connections.create(path)
    with contextlib.closing(sqlite_connections.connect(path)) as connection:
        connection.execute("CREATE TABLE numbers (number INTEGER)")
        connection.execute("SELECT number FROM numbers").fetchall()
        connection.executemany("INSERT INTO numbers VALUES (?)", [(number,) for number in range(500)])
        parsed = connection.cache_stats()["misses"]
        connection.execute("SELECT number FROM numbers").fetchall()
        assert connection.cache_stats()["misses"] == parsed
