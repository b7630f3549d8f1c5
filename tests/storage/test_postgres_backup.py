"""PostgreSQL is saved by its own programs, which get the password unseen, and a failed restore changes nothing."""

from pathlib import Path

import pytest

from postroad.storage.engine import backup_files, open_store, postgres_backup
from postroad.storage.people import accounts
from tests.postgres_server import PostgresServer
from tests.storage import samples


@pytest.fixture
def _programs(postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(postgres_server._programs), prepend=":")


@pytest.mark.parametrize(
    "url, plain, password",
    [
        ("postgresql://jo@db/mail", "postgresql://jo@db/mail", None),
        (
            "postgresql://jo:s%40:c@ret@db:5432/mail?sslmode=require",
            "postgresql://jo@db:5432/mail?sslmode=require",
            "s@:c@ret",
        ),
        ("postgres://db/mail?user=jo&password=secret&port=1", "postgres://db/mail?user=jo&port=1", "secret"),
        ("postgres://db/mail?password=secret", "postgres://db/mail", "secret"),
        ("postgresql:///mail?host=/run/pg", "postgresql:///mail?host=/run/pg", None),
    ],
)
def test_the_password_is_in_the_environment_only(url: str, plain: str, password: str | None) -> None:
    target = postgres_backup.Target.of(url)
    assert target.url == plain
    assert target.environment == ({"PGPASSWORD": password} if password else {})
    for command in (
        postgres_backup.dump_command(target, Path("file")),
        postgres_backup.restore_command(target, Path("file")),
    ):
        assert f"--dbname={plain}" in command
        assert password is None or password not in " ".join(command)


@pytest.mark.usefixtures("_programs")
async def test_what_was_there_is_kept_aside_and_comes_back_when_a_restore_fails(
    postgres_url: str, tmp_path: Path
) -> None:
    store = await open_store.open_current(postgres_url, migrate=True)
    assert await postgres_backup.is_in_use(postgres_url)
    assert await postgres_backup.is_empty(postgres_url)
    async with store.transaction() as tx:
        await samples.add_account(tx, "acc_1")
    target, file = postgres_backup.Target.of(postgres_url), tmp_path / "backup"
    await postgres_backup.dump(target, file)
    async with store.transaction() as tx:
        await samples.add_account(tx, "acc_2")
    await store.close()
    assert not await postgres_backup.is_in_use(postgres_url)
    assert not await postgres_backup.is_empty(postgres_url)

    # In place of what is there, nothing can be restored; nor does half of it stay.
    with pytest.raises(backup_files.BackupError, match=r"^pg_restore failed: .*already exists"):
        await postgres_backup.restore(target, file)
    aside = await postgres_backup.move_aside(postgres_url, stamp="1")
    assert aside == "before_restore_1"
    assert await postgres_backup.is_empty(postgres_url)
    assert await postgres_backup.move_aside(postgres_url, stamp="2") is None
    await postgres_backup.move_back(postgres_url, aside)
    assert not await postgres_backup.is_empty(postgres_url)

    for stamp in ("3", "4"):
        await postgres_backup.move_aside(postgres_url, stamp=stamp)
        await postgres_backup.restore(target, file)
        await postgres_backup.dump(target, file)  # without what is aside
    store = await open_store.open_current(postgres_url, migrate=False)
    async with store.reading() as tx:
        assert [one.id for one in await accounts.page(tx, after="", limit=9)] == ["acc_1"]
    await store.close()


@pytest.mark.usefixtures("_programs")
async def test_an_archive_of_something_else_and_a_server_that_does_not_answer_are_refused(
    postgres_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    with pytest.raises(backup_files.BackupError, match="is not a backup of Postroad: tables are missing"):
        await postgres_backup.dump(postgres_backup.Target.of(postgres_url), file)
    file.write_bytes(b"PGDMP and no more")
    with pytest.raises(backup_files.BackupError, match=r"^pg_restore failed: "):
        await postgres_backup.verify(file)
    away = f"postgresql://postgres@/mail?host={tmp_path}"
    with pytest.raises(backup_files.BackupError, match=r"^pg_dump failed: "):
        await postgres_backup.dump(postgres_backup.Target.of(away), file)
    with pytest.raises(backup_files.BackupError, match=r"^the database cannot be reached: "):
        await postgres_backup.is_empty(away)
