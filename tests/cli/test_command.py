"""The shape of every operator command: which installation, and how it ends."""

import json
import os
import socket
from pathlib import Path

import pytest

from tests.cli import cli_runner
from tests.cli.cli_runner import Installation


@pytest.fixture
def local(tmp_path: Path) -> Installation:
    """An installation on SQLite, for what does not depend on the engine."""
    installation = Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db")
    installation.text("migrate")
    return installation


def test_two_installations_at_once_are_a_wrong_use(local: Installation, tmp_path: Path) -> None:
    result = local.run("account", "list", "--data", str(tmp_path))
    assert result.exit_code == 2
    assert "cannot be combined" in result.stderr


def test_an_installation_can_be_given_by_the_environment_alone(
    local: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local.text("account", "create", "--name", "Shop")
    monkeypatch.setenv("POSTROAD_DATABASE__URL", f"sqlite:///{tmp_path}/postroad.db")
    monkeypatch.setenv("POSTROAD_SECURITY__SECRET_KEY", cli_runner.SECRET_KEY)
    assert "Shop" in cli_runner.run("account", "list").stdout


def test_a_folder_that_is_not_of_postroad_dev_is_refused_and_left_alone(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "absent"):
        assert cli_runner.sentence(cli_runner.run("account", "list", "--data", str(folder))) == (
            f"{folder} is not a data folder of 'postroad dev'; start 'postroad dev --data {folder}' first"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_configuration_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text("[http]\nlissten = 'x'")
    assert Installation(file).refusal("account", "list").startswith("http.lissten: unknown setting")
    assert "cannot be read" in Installation(tmp_path / "absent.toml").refusal("account", "list")


def test_a_missing_key_is_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "postroad.toml"
    file.write_text(f'[database]\nurl = "sqlite:///{tmp_path}/postroad.db"\n')
    result = Installation(file).run("account", "list")
    assert result.exit_code == 1
    assert "security.secret_key: missing or too weak" in result.stderr


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


def test_a_command_that_does_not_exist_is_a_wrong_use(local: Installation) -> None:
    assert cli_runner.run("acount").exit_code == 2
    assert local.run("account", "create").exit_code == 2
    assert local.run("account", "list", "--limit", "0").exit_code == 2


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
