"""`postroad move`: all or nothing, never two installations that can be started, and a way back.

That an installation answers as before is tested in tests/permissions, and the move of one under load in
tests/reliability.
"""

import asyncio
import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad import context
from postroad.services.suppressions import suppression_list
from postroad.storage.engine import migrations, open_store
from tests import next_migration, queue_steps, received_rows
from tests.cli import cli_runner
from tests.cli.cli_runner import Installation
from tests.cli.test_queue import send
from tests.postgres_server import Administrator, PostgresServer

# Copied after most others.
LATE_TABLE = "webhooks"
PROCESSES = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'postroad'"
# In a transaction, the server shows what it showed first.
CLEAR = "SELECT pg_stat_clear_snapshot();"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "postroad.db"


@pytest.fixture
def old(tmp_path: Path, clean_sqlite_url: str) -> Installation:
    """An installation on SQLite with two queued recipients, one of them deferred."""
    folder = tmp_path / "old"
    folder.mkdir()
    old = Installation.at(folder, url=clean_sqlite_url)
    old.text("account", "create", "--name", "Shop")
    old.text("domain", "add", "example.com", "--verified")
    old.text("credits", "add", "--amount", "100")
    send(old, "ada@example.net")
    send(old, "bob@example.org")
    return old


@pytest.fixture
def new(tmp_path: Path, postgres_url: str) -> Installation:
    """The installation on PostgreSQL; its database has no table yet."""
    return Installation.at(tmp_path, url=postgres_url)


@pytest.fixture
def administrator(postgres_server: PostgresServer, postgres_url: str) -> Iterator[Administrator]:
    with contextlib.closing(postgres_server.administrator(postgres_url)) as connected:
        yield connected


def refusal(installation: Installation, *words: str) -> str:
    """The last line of a command that has to fail; those before it are its progress."""
    result = installation.run(*words)
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


def move(installation: Installation, *words: str) -> str:
    result = installation.run("move", *words)
    assert result.exit_code == 0, result.output
    return result.stdout


def queued(installation: Installation) -> list[tuple[str, str]]:
    listed = installation.json("queue", "list")["recipients"]
    return sorted((one["email"], one["state"]) for one in listed)


def test_all_is_moved_and_held_and_the_file_cannot_be_started(
    old: Installation, new: Installation, file: Path, postgres_url: str
) -> None:
    result = new.run("move", str(file))
    assert (result.exit_code, result.stderr.splitlines()[0]) == (0, f"Checking {file}.")
    assert re.search(r"^Copying \d+ rows of \d+ tables\.$", result.stderr, re.MULTILINE)
    first, rows, held, *_ = result.stdout.splitlines()
    assert re.fullmatch(
        rf"Moved {file} to {re.escape(postgres_url)}: \d+ rows of \d+ tables in .* s, each compared\.", first
    )
    assert rows == (
        "Rows: 1 in accounts, 2 in messages, 2 in recipients, 2 in queue, 3 in ledger. Consistency: no findings."
    )
    assert held == f"The delivery of all mail is held, and Postroad refuses to start with {file}."
    assert queued(new) == [("ada@example.net", "held"), ("bob@example.org", "held")]
    assert "held the delivery of all mail (moved from SQLite)" in new.text("audit-log")
    assert new.text("verify").endswith("no findings.\n")

    moved = f"its data were moved to {postgres_url}: set database.url to that address, or use this database again after"
    assert old.refusal("account", "list") == (
        f"the database is no longer in use, because {moved} 'postroad move --back'"
    )
    checked = old.run("migrate", "--check")
    assert (checked.exit_code, moved in checked.stdout) == (2, True)
    assert refusal(new, "move", str(file)) == f"{file} was moved already; start the service on {postgres_url}"

    assert new.text("queue", "release").endswith("2 recipients in the queue.\n")
    assert queued(new) == [("ada@example.net", "ready"), ("bob@example.org", "ready")]


def test_what_is_moved_is_printed_as_json(old: Installation, new: Installation, file: Path, postgres_url: str) -> None:
    del old
    result = new.run("move", str(file), "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert (data["file"], data["moved_to"], data["findings"]) == (str(file), postgres_url, [])
    assert (data["rows"]["messages"], data["rows"]["audit_log"]) == (2, 3)


def test_a_move_is_undone_unless_mail_has_changed_since(old: Installation, new: Installation, file: Path) -> None:
    assert refusal(new, "move", str(file), "--back") == f"{file} was not moved, and can be used"
    move(new, str(file))
    assert move(new, str(file), "--back").startswith(f"{file} can be used again: set database.url to it")
    assert queued(old) == [("ada@example.net", "ready"), ("bob@example.org", "ready")]
    assert refusal(new, "move", str(file)).endswith(" is not empty; move to an empty database")


@pytest.mark.parametrize("change", ["accepted", "attempted", "suppressed", "unsubscribed", "received"])
def test_what_postgresql_did_is_not_lost_by_accident(
    old: Installation, new: Installation, file: Path, change: str
) -> None:
    move(new, str(file))
    account_id = new.json("account", "list")["accounts"][0]["id"]
    if change == "accepted":
        send(new, "cid@example.net")
    elif change == "suppressed":
        new.ask(lambda ctx: suppression_list.add(ctx, account_id, "bob@example.org"))
    elif change == "unsubscribed":
        new.ask(lambda ctx: suppression_list.add(ctx, account_id, "bob@example.org", list_name="news"))
    elif change == "received":
        new.ask(lambda ctx: received_rows.put(ctx, account_id))
    else:

        async def attempt(ctx: context.Context) -> None:
            (key,) = await queue_steps.claim(ctx, account_id, domain="example.net")
            await queue_steps.defer(ctx, key)

        new.text("queue", "release")
        new.ask(attempt)
    assert refusal(new, "move", str(file), "--back") == (
        "mail was accepted or sent since the move; with --force, what was accepted since is lost, "
        "and what was sent since is sent again"
    )
    assert "no longer in use" in old.refusal("queue", "list")
    move(new, str(file), "--back", "--force")
    assert len(queued(old)) == 2


def test_the_way_back_needs_no_server_that_is_gone(
    old: Installation, new: Installation, file: Path, postgres_url: str, tmp_path: Path
) -> None:
    move(new, str(file))
    gone = Installation.at(tmp_path, url=f"postgresql://postgres@/shop?host={tmp_path}&port=1")
    moved = f"{file} was moved to {postgres_url}; set database.url to that address"
    assert refusal(gone, "move", str(file), "--back") == refusal(gone, "move", str(file)) == moved
    move(gone, str(file), "--back", "--force")
    assert len(queued(old)) == 2


def test_a_command_that_is_killed_leaves_an_empty_database_and_is_run_again(
    old: Installation, new: Installation, file: Path, administrator: Administrator
) -> None:
    new.text("migrate")
    process = stopped_at_a_lock(new, file, administrator)
    # Meanwhile neither side can be opened.
    assert refusal(new, "move", str(file)) == f"{file} is in use; stop the service and every other command on it"
    assert old.run("account", "list").exit_code == 1
    process.kill()
    cli_runner.finish(process)
    administrator.execute("ROLLBACK;")
    wait(administrator, f"{PROCESSES};", "0")
    assert new.json("account", "list")["accounts"] == []
    assert queued(old) == [("ada@example.net", "ready"), ("bob@example.org", "ready")]
    move(new, str(file))
    assert queued(new) == [("ada@example.net", "held"), ("bob@example.org", "held")]


def test_a_connection_that_breaks_changes_nothing(
    old: Installation, new: Installation, file: Path, administrator: Administrator, postgres_url: str
) -> None:
    new.text("migrate")
    process = stopped_at_a_lock(new, file, administrator)
    administrator.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postroad';")
    administrator.execute("ROLLBACK;")
    code, printed, said = cli_runner.finish(process)
    assert (code, printed) == (1, "")
    assert said.splitlines()[-1].startswith(f"Error: nothing was moved to {postgres_url}: ")
    assert len(queued(old)) == 2
    move(new, str(file))


def stopped_at_a_lock(installation: Installation, file: Path, administrator: Administrator) -> subprocess.Popen[str]:
    """A move that has copied most of the tables, and waits for one."""
    administrator.execute(f"BEGIN; LOCK TABLE {LATE_TABLE} IN SHARE MODE;")
    process = cli_runner.start("move", str(file), "--config", str(installation.file), folder=installation.file.parent)
    wait(administrator, f"{PROCESSES} AND wait_event_type = 'Lock';", "1")
    return process


def wait(administrator: Administrator, question: str, answer: str) -> None:
    give_up_at = time.monotonic() + cli_runner.TIMEOUT_SECONDS
    while administrator.execute(f"{CLEAR} {question}").strip() != answer:
        assert time.monotonic() < give_up_at
        time.sleep(cli_runner.FIRST_PAUSE_SECONDS)


def test_a_host_that_dies_before_postgresql_commits_leaves_two_that_cannot_be_started(
    old: Installation, new: Installation, file: Path, postgres_url: str
) -> None:
    async def mark() -> None:
        store = await open_store.open_store(f"sqlite:///{file}")
        async with store.transaction() as tx:
            await migrations.mark_moved(tx, postgres_url)
        await store.close()

    asyncio.run(mark())
    assert "no longer in use" in old.refusal("account", "list")
    # The command moves again, or undoes it without asking what has changed.
    move(new, str(file), "--back")
    asyncio.run(mark())
    move(new, str(file))
    assert len(queued(new)) == 2


def test_nothing_is_moved_to_a_database_that_is_in_use(
    old: Installation, new: Installation, file: Path, postgres_url: str, postgres_server: PostgresServer
) -> None:
    del old
    with contextlib.closing(postgres_server.administrator(f"{postgres_url}&application_name=postroad")):
        in_use = f"{postgres_url} is in use; stop the service and every other command on it"
        assert refusal(new, "move", str(file)) == in_use
    move(new, str(file))


def test_what_does_not_fit_is_refused(
    old: Installation, new: Installation, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal(old, "move", str(file)) == (
        "database.url: not PostgreSQL; set it to the database to which FILE is moved"
    )
    assert cli_runner.usage_error(new.run("move", str(file), "--force")) == "--force needs --back."
    assert refusal(new, "move", str(tmp_path / "none")) == f"{tmp_path}/none: unable to open database file"
    (tmp_path / "text").write_text("no database, but long enough to be taken for the header of one, or even for more")
    assert refusal(new, "move", str(tmp_path / "text")) == f"{tmp_path}/text: file is not a database"
    (tmp_path / "empty").touch()
    assert refusal(new, "move", str(tmp_path / "empty")) == (
        f"{tmp_path}/empty is not a database of Postroad: tables are missing"
    )
    with monkeypatch.context() as patch:
        next_migration.add(patch, next_migration.NOTHING)
        newest = migrations.known("sqlite")[-1].version
        assert refusal(new, "move", str(file)) == (
            f"{file} has schema version {newest - 1}, but this version needs {newest}: "
            "migrate it with 'postroad migrate', or use a newer Postroad"
        )
    new.file.write_text(
        new.file.read_text().replace(cli_runner.SECRET_KEY, "another key, which is as long as it has to be")
    )
    assert refusal(new, "move", str(file)).startswith(f"{file}: the installation key does not match this database: ")
    assert len(queued(old)) == 2


def test_a_database_that_is_not_empty_is_left_as_it_is(old: Installation, new: Installation, file: Path) -> None:
    new.text("account", "create", "--name", "Another")
    assert refusal(new, "move", str(file)).endswith(" is not empty; move to an empty database")
    assert [one["name"] for one in new.json("account", "list")["accounts"]] == ["Another"]
    assert len(queued(old)) == 2


def test_findings_are_moved_as_they_are(old: Installation, new: Installation, file: Path) -> None:
    async def spend(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await tx.run_script("UPDATE accounts SET available = 7")

    old.ask(spend)
    printed = move(new, str(file))
    assert "Consistency: 1 finding, as before." in printed
    assert "balances: account acc_" in new.run("verify").stdout


def test_a_copy_that_differs_is_not_kept(
    old: Installation, new: Installation, file: Path, administrator: Administrator
) -> None:
    new.text("migrate")
    administrator.execute(
        "CREATE FUNCTION spoil() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN NEW.subject := ''x''; RETURN NEW; END';"
        "CREATE TRIGGER spoil BEFORE INSERT ON messages FOR EACH ROW EXECUTE FUNCTION spoil();"
    )
    assert refusal(new, "move", str(file)) == "nothing was moved: copied rows differ in messages"
    administrator.execute("DROP TRIGGER spoil ON messages;")
    administrator.execute("ALTER TABLE notices RENAME COLUMN content TO text;")
    assert refusal(new, "move", str(file)) == "the tables of the two databases differ: notices"
    administrator.execute("ALTER TABLE notices RENAME COLUMN text TO content;")
    assert new.json("account", "list")["accounts"] == []
    move(new, str(file))
    assert len(queued(new)) == 2
