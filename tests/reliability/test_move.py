"""A move to PostgreSQL under load, and to a disk that is too small: what was accepted is there once, on one side."""

from pathlib import Path

from tests.cli.cli_runner import Installation, run
from tests.reliability import move_under_load, small_disk_postgres


async def test_callers_who_do_not_give_up_lose_nothing_in_a_move(
    clean_sqlite_url: str, postgres_url: str, tmp_path: Path
) -> None:
    outcome = await move_under_load.run(tmp_path, clean_sqlite_url, postgres_url, messages=4 * move_under_load.BATCH)
    assert outcome.moved > 4 * move_under_load.BATCH
    assert outcome.queued > 100
    assert outcome.while_held >= move_under_load.MORE
    assert outcome.accepted >= outcome.moved + outcome.while_held + move_under_load.MORE


def test_a_server_without_space_gets_nothing_and_the_file_goes_on(clean_sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    old = Installation.at(tmp_path, url=clean_sqlite_url)
    old.text("account", "create", "--name", "Shop")
    with small_disk_postgres.SmallDiskServer() as server:
        url = server.create_database()
        new = Installation.at(tmp_path / "new", url=url)
        new.text("migrate")
        words = ("move", str(tmp_path / "postroad.db"), "--config", str(new.file))
        server.fill()
        refused = run(*words)
        said = refused.stderr.splitlines()[-1]
        assert refused.exit_code == 1
        assert said.startswith(f"Error: nothing was moved to {url}: could not extend file")
        assert said.endswith("No space left on device")
        assert len(old.json("account", "list")["accounts"]) == 1
        server.make_room()
        assert new.json("account", "list")["accounts"] == []
        assert run(*words).exit_code == 0
        assert len(new.json("account", "list")["accounts"]) == 1
