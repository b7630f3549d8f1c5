"""`postroad backup` and `postroad restore`: what they say, what they refuse, and that a restored queue is held."""

import asyncio
import os
from pathlib import Path

import pytest

from postroad.storage.engine import migrations, open_store
from tests import next_migration
from tests.cli.cli_runner import Installation
from tests.cli.test_queue import send
from tests.storage import samples


@pytest.fixture
def local(tmp_path: Path, clean_sqlite_url: str) -> Installation:
    """An installation on SQLite with one queued recipient."""
    local = Installation.at(tmp_path, url=clean_sqlite_url)
    local.text("account", "create", "--name", "Shop")
    local.text("domain", "add", "example.com", "--verified")
    local.text("credits", "add", "--amount", "100")
    send(local, "ada@example.net")
    return local


def test_a_backup_says_what_it_contains_and_that_the_key_is_not_in_it(local: Installation, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    first, rows, key = local.text("backup", str(file)).splitlines()
    assert f": {file}, {file.stat().st_size} bytes, in " in first
    assert first.endswith(" s; verified.")
    assert rows.startswith(
        "Rows: 1 in accounts, 1 in messages, 1 in recipients, 1 in queue, 2 in ledger; schema version "
    )
    assert key.startswith("The backup does not contain the installation key.")
    assert local.refusal("backup", str(file)) == f"{file} exists; choose another name, or replace it with --force"
    assert local.json("backup", str(file), "--force")["counts"]["queue"] == 1


def test_the_database_is_not_replaced_by_its_own_backup(local: Installation, tmp_path: Path) -> None:
    database, link = tmp_path / "postroad.db", tmp_path / "link"
    link.symlink_to(database)
    before = database.stat().st_ino
    for file in (database, link):
        assert local.refusal("backup", str(file), "--force") == f"{file} is the database itself; choose another name"
    assert database.stat().st_ino == before


def test_a_restore_keeps_what_was_there_and_holds_all_mail(local: Installation, tmp_path: Path) -> None:
    file = tmp_path / "backup"
    local.text("backup", str(file))
    send(local, "bob@example.net")
    assert local.refusal("restore", str(file)).endswith(" is not empty; --force replaces it and keeps the old one")
    lines = local.text("restore", str(file), "--force").splitlines()
    aside = Path(lines[0].rpartition(" What was there before is kept as ")[2].rstrip("."))
    assert aside.parent == tmp_path
    assert lines[1].startswith("Delivery of all mail is held: restored from a backup whose newest message is from 2")
    assert lines[1].endswith(" 1 queued recipients may have been delivered since.")
    assert lines[2] == "Next:"
    listed = local.json("queue", "list")
    assert [(one["email"], one["state"]) for one in listed["recipients"]] == [("ada@example.net", "held")]
    assert "held the delivery of all mail (restored from a backup " in local.text("audit-log")
    assert local.text("verify").endswith("no findings.\n")
    other = Installation.at(tmp_path, url=f"sqlite:///{aside}")
    assert len(other.json("queue", "list")["recipients"]) == 2


def test_a_backup_of_an_older_version_is_migrated(
    local: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "backup"

    async def make() -> None:
        store = await open_store.open_current(f"sqlite:///{file}", migrate=True)
        async with store.transaction() as tx:
            await samples.add_account(tx, "acc_old")
        await store.close()

    asyncio.run(make())
    next_migration.add(monkeypatch, next_migration.NOTHING)
    (tmp_path / "postroad.db").unlink()
    data = local.json("restore", str(file))
    assert data == {"aside": None, "reason": "restored from a backup without messages", "may_be_duplicates": 0}
    assert [one["id"] for one in local.json("account", "list")["accounts"]] == ["acc_old"]


def test_what_does_not_fit_is_refused(local: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, newest = tmp_path / "backup", migrations.known("sqlite")[-1].version
    with monkeypatch.context() as patch:
        next_migration.add(patch, next_migration.NOTHING)
        local.text("migrate")
        local.text("backup", str(file))
    refusal = local.refusal("restore", str(file), "--force")
    assert refusal.endswith(f"knows only {newest}: use a newer Postroad")
    (tmp_path / "dump").write_bytes(b"PGDMP")
    expected = f"{tmp_path / 'dump'} is a backup of postgresql, and database.url names another engine"
    assert local.refusal("restore", str(tmp_path / "dump")) == expected
    missing = Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/missing.db")
    assert missing.refusal("backup", str(tmp_path / "none")) == f"there is no database at {tmp_path}/missing.db"
    assert not (tmp_path / "none").exists()


def test_without_its_programs_the_command_for_postgresql_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    remote = Installation.at(tmp_path, url="postgresql://jo:secret@db.example.com/mail")
    assert remote.refusal("backup", "mail.dump") == (
        "pg_dump is not installed on this host; with PGPASSWORD set, run: pg_dump --format=custom --no-owner "
        "'--exclude-schema=before_restore_*' --file=mail.dump --dbname=postgresql://jo@db.example.com/mail"
    )
    (tmp_path / "mail.dump").write_bytes(b"PGDMP")
    said = remote.refusal("restore", str(tmp_path / "mail.dump"))
    assert said.startswith("pg_restore is not installed on this host; with PGPASSWORD set, run on an empty database: ")
    assert said.endswith("; then start with 'postroad serve --hold-delivery'")
    assert "secret" not in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_what_root_writes_belongs_to_the_owner_of_the_folder(local: Installation, tmp_path: Path) -> None:
    service = 61234, 61235
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.mkdir()
    elsewhere.mkdir()
    os.chown(data, *service)
    local.text("backup", str(data / "backup"))
    local.text("backup", str(elsewhere / "backup"))
    restored = Installation.at(tmp_path, url=f"sqlite:///{data}/postroad.db")
    for _ in range(2):  # where nothing was, and over a database
        restored.text("restore", str(elsewhere / "backup"), "--force")
        assert restored.json("account", "list")["accounts"]
    migrated = Installation.at(tmp_path, url=f"sqlite:///{data}/migrated.db")
    migrated.text("migrate")
    assert len(list(data.iterdir())) >= 4
    assert {(one.stat().st_uid, one.stat().st_gid) for one in data.iterdir()} == {service}
    assert (elsewhere / "backup").stat().st_uid == 0
