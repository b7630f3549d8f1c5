"""The shape of every operator command: which installation it works on, how that is found, and how it ends."""

import contextlib
import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.cli.framework import server_command
from tests.cli import cli_runner
from tests.cli.cli_runner import Installation


@pytest.fixture
def local(tmp_path: Path) -> Installation:
    """An installation on SQLite, for what does not depend on the engine."""
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db")
    installation.text("migrate")
    return installation


def test_an_installation_can_be_given_by_the_environment_alone(
    local: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.text("account", "create", "--name", "Shop")
    monkeypatch.setenv("POSTROAD_DATABASE__URL", f"sqlite:///{tmp_path}/postroad.db")
    monkeypatch.setenv("POSTROAD_SECURITY__INSTALLATION_KEY", cli_runner.SECRET_KEY)
    assert "Shop" in cli_runner.run("account", "list").stdout


def test_a_folder_that_is_not_of_postroad_dev_is_refused_and_left_alone(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        assert cli_runner.sentence(cli_runner.run("account", "list", "--data", str(folder))) == (
            f"{folder} is not a data folder of 'postroad dev'; start 'postroad dev --data {folder}' first"
        )
    assert list(tmp_path.iterdir()) == []
    both = cli_runner.run("account", "list", "--data", str(tmp_path), "--config", "x.toml")
    assert (both.exit_code, "cannot be combined" in both.stderr) == (2, True)


def test_a_wrong_configuration_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text("[http]\nlissten = 'x'")
    assert Installation(file).refusal("account", "list").startswith("http.lissten: unknown setting")
    assert "cannot be read" in Installation(tmp_path / "absent.toml").refusal("account", "list")


def test_a_new_database_is_announced_with_its_place(tmp_path: Path) -> None:
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/new.db")
    result = installation.run("account", "list", "--json")
    assert (result.exit_code, json.loads(result.stdout)["accounts"]) == (0, [])
    assert result.stderr == f"Creating a new database: {tmp_path}/new.db\n"
    assert installation.run("account", "list").stderr == ""


def test_a_store_that_is_away_is_named_without_its_password_and_with_the_reason(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        installation = Installation.at(tmp_path, url=f"postgresql://jo:hunter2@127.0.0.1:{port}/name")
        for words in (("account", "list"), ("migrate",), ("verify",)):
            sentence = installation.refusal(*words)
            assert sentence.startswith("the database cannot be reached")
            assert f"(postgresql://jo:***@127.0.0.1:{port}/name: " in sentence
            assert "hunter2" not in sentence


def test_a_database_that_is_not_there_is_a_sentence_too(tmp_path: Path, postgres_url: str) -> None:
    installation = Installation.at(tmp_path, url=postgres_url.replace("/test_", "/absent_test_"))
    assert "does not exist" in installation.refusal("account", "list")


def test_a_file_that_cannot_be_opened_or_is_no_database_is_a_sentence(tmp_path: Path) -> None:
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/absent/x.db")
    result = installation.run("account", "list")
    assert result.exit_code == 1
    assert f"the folder {tmp_path}/absent does not exist" in result.stderr
    (tmp_path / "text.db").write_text("This is not a database, whatever its name may say about it. " * 20)
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/text.db")
    assert "file is not a database" in installation.refusal("account", "list")


def test_two_processes_can_work_on_one_sqlite_file_at_once(local: Installation, tmp_path: Path) -> None:
    local.text("account", "create", "--name", "Shop")
    words = ("credits", "add", "--amount", "1", "--json", "--config", str(local.file))
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        folder.mkdir()
    processes = [cli_runner.Service(*words, folder=folder) for folder in folders]
    assert [process.finish()[::2] for process in processes] == [(0, "")] * 4
    assert local.json("account", "show", "Shop")["account"]["credits"]["available"] == 4
    assert local.json("verify")["findings"] == []


def test_a_command_is_a_program_with_an_exit_code_and_two_outputs(local: Installation, tmp_path: Path) -> None:
    config = ("--config", str(local.file))
    code, stdout, stderr = cli_runner.finish(cli_runner.start("account", "show", "x", *config, folder=tmp_path))
    assert (code, stdout, stderr) == (1, "", "Error: account 'x' does not exist\n")
    code, stdout, stderr = cli_runner.finish(cli_runner.start("--version", folder=tmp_path))
    assert (code, stderr) == (0, "")
    assert stdout.startswith("postroad, version ")


def test_a_reader_who_goes_away_causes_no_traceback(local: Installation, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = cli_runner.start("check-config", "--config", str(local.file), folder=tmp_path, stdout=writing)
    os.close(writing)
    _, _, stderr = cli_runner.finish(process)
    assert "Traceback" not in stderr


def _installation(folder: Path, *, account: str) -> Installation:
    folder.mkdir()
    made = Installation.at(folder, url=f"sqlite:///{folder}/postroad.db")
    made.run("account", "create", "--name", account)
    return made


def _accounts(*words: str) -> str:
    result = cli_runner.run("account", "list", *words)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def test_the_option_comes_before_the_variable_and_that_before_the_file_of_init(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_option, by_variable, by_init = (
        _installation(tmp_path / name, account=name) for name in ("option", "variable", "init")
    )
    monkeypatch.setattr(server_command, "CONFIG_FILE", by_init.file)
    assert "init" in _accounts()
    monkeypatch.setenv("POSTROAD_CONFIG", str(by_variable.file))
    assert "variable" in _accounts()
    assert "option" in _accounts("--config", str(by_option.file))
    # An empty variable names nothing, as one that a Compose file passes on.
    monkeypatch.setenv("POSTROAD_CONFIG", "")
    assert "init" in _accounts()


def test_without_an_installation_the_error_names_every_way_to_give_one(tmp_path: Path) -> None:
    for words in (("account", "list"), ("doctor",), ("check-config",), ("serve",)):
        said = cli_runner.usage_error(cli_runner.run(*words))
        assert said == (
            f"No installation given: {server_command.CONFIG_FILE} does not exist. Use --config FILE or --data DIR (the "
            "folder of 'postroad dev'), or set POSTROAD_CONFIG or POSTROAD_<SECTION>__<KEY> variables. "
            "'postroad init' sets up an installation."
        )
    assert not [*tmp_path.iterdir()]


def test_a_variable_that_names_no_file_is_an_error_and_no_other_file_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_command, "CONFIG_FILE", _installation(tmp_path / "init", account="init").file)
    monkeypatch.setenv("POSTROAD_CONFIG", str(tmp_path / "absent.toml"))
    for words in (("account", "list"), ("serve",)):
        said = cli_runner.sentence(cli_runner.run(*words))
        assert said == f"{tmp_path}/absent.toml: cannot be read: No such file or directory"


@contextlib.contextmanager
def _without_rights(folder: Path) -> Iterator[None]:
    """Nobody may enter the folder. Root always may, and becomes somebody else meanwhile."""
    own = os.geteuid()
    folder.chmod(0)
    if own == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(own)
        folder.chmod(0o700)


def test_another_user_is_told_whose_file_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "etc"
    monkeypatch.setattr(server_command, "CONFIG_FILE", _installation(folder, account="init").file)
    # As `runuser` leaves it: the logins of another user are not those of this one.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "home"))
    for words in (("account", "list"), ("serve", "--help"), ("messages", "--help")):
        cli_runner.run(*words)  # imports the command
    with _without_rights(folder):
        results = [cli_runner.run(*words) for words in (("account", "list"), ("serve",))]
        remote = cli_runner.run("messages")
    owner = folder.owner()
    for result in results:
        assert cli_runner.sentence(result) == (
            f"{folder}/postroad.toml: cannot be read by this user. "
            f"Run the command as the user of the service: runuser -u {owner} -- postroad …"
        )
    assert "No server given." in cli_runner.usage_error(remote)


def test_init_writes_the_file_that_the_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "etc" / "postroad.toml"
    monkeypatch.setenv("POSTROAD_CONFIG", str(file))
    words = ("--hostname", "mail.example.com", "--account", "Shop", "--domain", "example.com", "--email", "a@b.example")
    result = cli_runner.run("init", "--yes", "--data", str(tmp_path / "data"), *words)
    assert result.exit_code == 0, result.output
    assert f"Created: settings {file}" in result.stdout
    assert "Shop" in _accounts()


def test_check_config_names_the_file_that_it_found_and_checks_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    # Folders of tests are closed to others, and so is what is in them.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        file = Installation.at(folder, url=f"sqlite:///{folder}/postroad.db").file
        file.chmod(0o644)
        monkeypatch.setattr(server_command, "CONFIG_FILE", file)
        first, second = cli_runner.run("check-config").stdout.splitlines()[:2]
        assert first == f"# File: {file}"
        assert second.startswith(f"# Warning: {file} contains secrets, and every user of this system can read it;")
        assert json.loads(cli_runner.run("check-config", "--json").stdout)["file"] == str(file)
