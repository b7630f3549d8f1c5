"""A backup has its name only when it is complete, is private, and replaces nothing by accident."""

from pathlib import Path

import pytest

from postroad.storage.engine import backup_files


def test_a_file_gets_its_name_when_it_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    with backup_files.written(file, replace=False) as part:
        assert part.stat().st_mode & 0o777 == 0o600
        part.write_bytes(b"everything")
        assert not file.exists()
    assert file.read_bytes() == b"everything"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_fails_leaves_nothing_and_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    file.write_bytes(b"old")
    (tmp_path / "backup.part-wal").write_bytes(b"of a run that was killed")
    with pytest.raises(ZeroDivisionError), backup_files.written(file, replace=True) as part:
        part.write_bytes(b"%d" % (1 // len(part.read_bytes())))
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_an_existing_file_is_replaced_only_on_request(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    file.write_bytes(b"old")
    with pytest.raises(backup_files.BackupError, match="backup exists; choose another name"):
        backup_files.written(file, replace=False).__enter__()
    with backup_files.written(file, replace=True) as part:
        part.write_bytes(b"new")
    assert file.read_bytes() == b"new"


def test_a_folder_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    with pytest.raises(backup_files.BackupError, match="No such file or directory"):
        backup_files.written(tmp_path / "missing" / "backup", replace=False).__enter__()


def test_the_kind_of_a_backup_is_read_from_its_beginning(tmp_path: Path) -> None:
    file = tmp_path / "backup"
    for beginning, kind in ((b"SQLite format 3\0...", "sqlite"), (b"PGDMP\1", "postgresql")):
        file.write_bytes(beginning)
        assert backup_files.kind_of(file) == kind
    file.write_bytes(b"")
    with pytest.raises(backup_files.BackupError, match="is not a backup of Postroad"):
        backup_files.kind_of(file)
    with pytest.raises(backup_files.BackupError, match="No such file or directory"):
        backup_files.kind_of(tmp_path / "missing")
