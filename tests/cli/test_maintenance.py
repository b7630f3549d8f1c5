"""`postroad migrate`, `audit` and `check-config`."""

import datetime as dt
import json
import re
import tomllib
from pathlib import Path

import pytest

from postroad import build_version, config, context
from postroad.config import changes
from postroad.storage.engine import migrations
from postroad.storage.operations import processes
from tests.cli import cli_runner
from tests.cli.both_engines import empty
from tests.cli.cli_runner import Installation
from tests.services.operations.checks import setups

__all__ = ["empty"]


@pytest.fixture(params=["sqlite", "postgres"])
def new_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store in which there is nothing, not even a schema."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/postroad.db"
    return str(request.getfixturevalue("postgres_url"))


def test_migrate_brings_a_new_store_up_to_date_and_then_has_nothing_to_do(
    tmp_path: Path, new_database_url: str
) -> None:
    installation = Installation.at(tmp_path, url=new_database_url)
    done = installation.json("migrate")
    newest = migrations.known("sqlite")[-1].version
    assert done["applied"][0] == {"version": 1, "name": "baseline"}
    assert (done["from"], done["to"], done["seconds"] >= 0) == (0, newest, True)
    assert installation.json("migrate") == {"from": newest, "to": newest, "applied": []}
    assert installation.text("migrate") == "The schema is up to date.\n"


def test_what_was_applied_is_printed(tmp_path: Path, new_database_url: str) -> None:
    migrated, applied = Installation.at(tmp_path, url=new_database_url).text("migrate").splitlines()
    newest = migrations.known("sqlite")[-1].version
    assert re.fullmatch(rf"Migrated the schema from version 0 to {newest} in \d+\.\d s\.", migrated)
    assert applied.startswith("Applied: 0001 baseline")


def test_a_check_says_what_would_be_applied_and_applies_nothing(tmp_path: Path, new_database_url: str) -> None:
    installation = Installation.at(tmp_path, url=new_database_url)
    result = installation.run("migrate", "--check")
    assert result.exit_code == 1
    assert result.stdout.startswith("The schema is at version 0. 'postroad migrate' would apply: 0001 baseline")
    assert not (tmp_path / "postroad.db").exists()
    assert json.loads(installation.run("migrate", "--check", "--json").stdout)["pending"][0]["name"] == "baseline"
    installation.text("migrate")
    assert installation.text("migrate", "--check") == "The schema is up to date.\n"


@pytest.mark.parametrize(
    "steps_back, sentence",
    [
        (2, "Processes that know schema version {newest} or newer can keep running."),
        (1, "Stop the processes of the older version on all hosts first: they do not work with the new schema."),
    ],
)
def test_a_check_says_whether_the_older_version_can_keep_running(
    tmp_path: Path, new_database_url: str, monkeypatch: pytest.MonkeyPatch, steps_back: int, sentence: str
) -> None:
    known = migrations.known
    newest = known("sqlite")[-1].version
    installation = Installation.at(tmp_path, url=new_database_url)
    assert "running" not in installation.run("migrate", "--check").stdout
    installation.text("migrate")
    next_steps = [
        migrations.Migration(newest + 1, "next", "SELECT 1;", 1),
        migrations.Migration(newest + 2, "after", "SELECT 1;", newest + 2 - steps_back),
    ]
    monkeypatch.setattr(migrations, "known", lambda dialect: [*known(dialect), *next_steps])
    result = installation.run("migrate", "--check")
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (1, [sentence.format(newest=newest)])
    printed = json.loads(installation.run("migrate", "--check", "--json").stdout)
    assert printed["compatible_from"] == newest + 2 - steps_back


def test_a_check_of_a_schema_from_the_future_ends_with_2_unless_it_is_compatible(empty: Installation) -> None:
    async def leave_a_compatible_schema(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await tx.execute("migrations.record", 9998, "future", 1)

    async def leave_a_newer_schema(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await tx.execute("migrations.record", 9999, "future", 9999)

    empty.ask(leave_a_compatible_schema)
    assert empty.run("migrate", "--check").exit_code == 0
    assert empty.text("migrate") == "The schema is up to date.\n"
    empty.ask(leave_a_newer_schema)
    result = empty.run("migrate", "--check")
    assert result.exit_code == 2
    assert "version 9999 and does not work with this version: use a newer Postroad." in result.stdout


# What a later version might ask for.
LATER = """
["0.2.0".removed]
"http.old" = "is http.new now; rename it"
["0.2.0".changed]
"http.listen" = "is for IPv6 as well"
"smtp.listen" = "is for IPv6 as well"
["0.2.0".behaviour]
"Mail to private networks" = "is deferred until delivery.allow_private permits it"
["0.2.0".run]
"postroad verify" = "counts are stored in another way"
"""


async def start_version(ctx: context.Context, version: str) -> None:
    async with ctx.store.transaction() as tx:
        await processes.record_version(tx, version)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this were version 0.2.0."""
    monkeypatch.setattr(changes, "shipped", lambda: changes.parse(LATER))
    monkeypatch.setattr(build_version, "current", lambda: "0.2.0")


@pytest.mark.usefixtures("later")
def test_a_check_lists_what_the_upgrade_asks_of_this_installation(empty: Installation) -> None:
    empty.file.write_text(f'{empty.file.read_text()}[http]\nlisten = "127.0.0.1:8025"\n')
    empty.ask(lambda ctx: start_version(ctx, "0.1.0"))
    assert empty.text("migrate", "--check").splitlines() == [
        "The schema is up to date.",
        "",
        "What this upgrade changes for you:",
        "- http.listen is for IPv6 as well.",
        "- Mail to private networks is deferred until delivery.allow_private permits it.",
        "- Run 'postroad verify': counts are stored in another way.",
    ]
    printed = empty.json("migrate", "--check")
    assert (printed["from"], printed["to"], len(printed["changes"])) == ("0.1.0", "0.2.0", 3)
    assert printed["changes"][0] == {
        "version": "0.2.0",
        "kind": "changed",
        "subject": "http.listen",
        "text": "is for IPv6 as well",
    }
    empty.ask(lambda ctx: start_version(ctx, "0.2.0"))
    assert empty.text("migrate", "--check") == "The schema is up to date.\n"


@pytest.mark.usefixtures("later")
def test_a_check_names_removed_settings_instead_of_failing_at_the_first(empty: Installation) -> None:
    empty.text("migrate")
    empty.file.write_text(f"{empty.file.read_text()}[http]\nold = 1\n")
    result = empty.run("migrate", "--check")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[2:] == [
        "What this upgrade changes for you:",
        "- http.old is http.new now; rename it.",
    ]
    assert empty.refusal("migrate") == f"http.old: is http.new now; rename it (in {empty.file})"


@pytest.mark.usefixtures("later")
def test_a_check_says_when_an_upgrade_asks_nothing(empty: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    empty.ask(lambda ctx: start_version(ctx, "0.1.0"))
    monkeypatch.setattr(changes, "shipped", list)
    last = empty.text("migrate", "--check").splitlines()[-1]
    assert last == "This upgrade, from 0.1.0 to 0.2.0, changes nothing else for you."


@pytest.mark.usefixtures("later")
def test_a_database_from_before_versions_were_recorded_counts_as_older_than_all(
    tmp_path: Path, new_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = Installation.at(tmp_path, url=new_database_url)
    known = migrations.known
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "known", lambda dialect: known(dialect)[:1])
        installation.text("migrate")
    checked = installation.run("migrate", "--check").stdout
    assert "'postroad migrate' would apply: 0002 last_started" in checked
    assert "Run 'postroad verify'" in checked


def test_an_older_schema_is_refused_when_it_is_to_be_migrated_by_hand(tmp_path: Path, new_database_url: str) -> None:
    installation = Installation.at(tmp_path, url=new_database_url)
    text = installation.file.read_text().replace("[security]", "migrate_at_start = false\n[security]")
    installation.file.write_text(text)
    result = installation.run("account", "list")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "run 'postroad migrate'" in result.stderr
    installation.text("migrate")
    assert installation.json("account", "list")["accounts"] == []


def test_verify_of_a_consistent_store_counts_and_ends_with_0(installation: Installation) -> None:
    installation.text("credits", "add", "--amount", "7")
    report = installation.json("verify")
    assert (report["counts"]["accounts"], report["counts"]["ledger_entries"], report["findings"]) == (1, 1, [])
    assert installation.text("verify") == (
        "Checked 1 account, 0 messages, 0 recipients, 1 ledger entry, 0 idempotency keys: no findings.\n"
    )


def test_verify_of_an_inconsistent_store_names_the_findings_and_ends_with_1(installation: Installation) -> None:
    account = installation.json("account", "show", "Shop")["account"]["id"]

    async def lose_credits(ctx: context.Context) -> None:
        async with ctx.store.transaction() as tx:
            await tx.execute_many("accounts.move_credits", [(account, 5, 0, None, None)])

    installation.ask(lose_credits)
    result = installation.run("verify", "--json")
    assert result.exit_code == 1
    (finding,) = json.loads(result.stdout)["findings"]
    assert finding["check"] == "balances"
    assert account in finding["text"]
    result = installation.run("verify")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith(f"balances: account {account}")
    assert result.stdout.endswith(": 1 finding.\n")


def test_check_config_prints_the_settings_in_effect_without_secrets(tmp_path: Path) -> None:
    installation = Installation.at(tmp_path, url="postgresql://jo:hunter2@host/name")
    printed = installation.text("check-config")
    assert 'database.url = "postgresql://jo:***@host/name"\n' in printed
    assert 'security.installation_key = "***"\n' in printed
    assert tomllib.loads(printed).keys() == config.defaults().keys()
    assert tomllib.loads(printed) == installation.json("check-config")["settings"]
    assert "hunter2" not in printed
    assert cli_runner.SECRET_KEY not in printed


def test_check_config_names_what_is_unsafe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installation = Installation.at(tmp_path, url="sqlite:///x.db")
    assert installation.json("check-config")["warnings"] == []
    monkeypatch.setenv("POSTROAD_HTTP__LISTEN", "0.0.0.0:8025")
    (warning,) = installation.json("check-config")["warnings"]
    assert warning.startswith("http.listen: keys and passwords cross the network unencrypted")
    printed = installation.text("check-config")
    assert printed.startswith(f"# File: {installation.file}\n# Warning: {warning}\n")
    assert tomllib.loads(printed) == installation.json("check-config")["settings"]


def test_check_config_names_what_does_not_fit_this_host(tmp_path: Path) -> None:
    installation = Installation.at(tmp_path, url="sqlite:///x.db")
    expired, _ = setups.certificate(tmp_path, days=-400)
    text = f'[tls]\ncertificate = "{expired["certificate"]}"\nkey = "{expired["key"]}"\n'
    text += '[delivery]\nhostname = "vm"\n[[sources]]\nname = "out_1"\naddress = "192.0.2.1"\n'
    installation.file.write_text(f"{installation.file.read_text()}\n{text}")
    day = dt.datetime.fromtimestamp(setups.NOW / 1e6, dt.UTC) - dt.timedelta(days=400)
    assert installation.json("check-config")["warnings"] == [
        f"tls.certificate: the certificate in {tmp_path}/chain.pem expired on {day:%Y-%m-%d}; renew it",
        (
            "delivery.hostname: 'vm' is not a fully qualified name, and many servers refuse mail from it; set it to a "
            "name such as mail.example.org that resolves to this host"
        ),
        (
            "sources.out_1.address: no network interface of this host has 192.0.2.1; add it to one, unless another "
            "host sends from it"
        ),
    ]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/gone/postroad.db")
    sentence = f"database.url: the folder {tmp_path}/gone does not exist; create it, for the user of the service"
    for words in (("check-config",), ("account", "list")):
        assert installation.refusal(*words) == sentence


def test_check_config_refuses_what_the_service_would(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text("")
    assert "security.installation_key: missing or too weak" in Installation(file).refusal("check-config")
    installation = Installation.at(tmp_path, url="sqlite:///x.db")
    files = 'certificate = "/nowhere.pem"\nkey = "/nowhere.pem"\n'
    installation.file.write_text(f"{installation.file.read_text()}\n[tls]\n{files}")
    refusal = installation.refusal("check-config")
    assert refusal.endswith("tls.certificate: /nowhere.pem cannot be read: No such file or directory")


def test_check_config_makes_no_database(tmp_path: Path) -> None:
    Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/new.db").text("check-config")
    assert not (tmp_path / "new.db").exists()
