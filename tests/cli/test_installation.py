"""Which settings file a command uses: the option's, that of POSTROAD_CONFIG, or the file of `postroad init`."""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from postroad.cli.framework import server_command
from tests.cli import cli_runner
from tests.cli.cli_runner import Installation


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


def test_variables_of_settings_override_the_file_that_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (_installation(tmp_path / name, account=name) for name in ("one", "other"))
    monkeypatch.setattr(server_command, "CONFIG_FILE", one.file)
    monkeypatch.setenv("POSTROAD_DATABASE__URL", f"sqlite:///{other.file.parent}/postroad.db")
    assert "other" in _accounts()


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
            f"Run the command as the user of the service: sudo -u {owner} postroad …"
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
