"""Every command needs the settings of the installation, a key with certain scopes, or nothing: each is tried.

The settings contain the key of the installation and name its database: whoever has them operates it. No login and no
API key replaces them.
"""

from pathlib import Path

import click
import click.testing
import pytest

from postroad.cli.framework import command, server_command
from postroad.model.people import callers
from tests.cli import cli_runner
from tests.cli.server_runner import Server, home, remote, server
from tests.cli.test_commands import COMMANDS

# What a key needs for each command that works with a server, with words that make a request.
SCOPES = {
    "postroad send": ("send", "--from shop@demo.example --to ada@example.net --subject x --text x"),
    "postroad messages": ("read", ""),
    "postroad show": ("read", f"em_{'0' * 28}"),
    "postroad tail": ("read", ""),
    "postroad suppression list": ("suppressions", ""),
    "postroad suppression add": ("suppressions", "new@example.net"),
    "postroad suppression remove": ("suppressions", "new@example.net"),
    "postroad domain check": ("domains", "demo.example"),
    "postroad template diff": ("templates", "."),
    "postroad template push": ("templates", ". --yes"),
    "postroad template pull": ("templates", "pulled"),
    "postroad webhook listen": ("webhooks", "--forward-to http://127.0.0.1:1/"),
    "postroad top": ("operator", ""),
}
ENDLESS = {"postroad tail", "postroad webhook listen", "postroad top"}
# They ask nothing themselves; what the tools of `mcp` ask for is tested in tests/agents.
NOTHING = {
    "postroad dev",
    "postroad login",
    "postroad logout",
    "postroad deploy-files",
    "postroad completion",
}
# They make an installation, or run one.
RUNNERS = {"postroad init", "postroad serve"}
OF_INSTALLATION = sorted(COMMANDS.keys() - SCOPES.keys() - NOTHING - RUNNERS)
REFUSED = 3

__all__ = ["home", "remote", "server"]


def test_every_command_needs_something_that_is_listed() -> None:
    for path, one in COMMANDS.items():
        is_of_server = isinstance(one, server_command.ServerCommand) or path in ENDLESS
        assert is_of_server == (path in SCOPES), path
        is_of_host = isinstance(one, (command.SettingsCommand, server_command.HostCommand))
        assert is_of_host == (path in OF_INSTALLATION), path
    assert len(OF_INSTALLATION) > 50


def test_a_command_that_uses_a_server_needs_a_key_with_its_scope(
    remote: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    scopes = [scope.value for scope in callers.Scope]
    alone = {scope: remote.key_with(scope) for scope in scopes}
    without = {scope: remote.key_with(",".join(one for one in scopes if one != scope)) for scope in scopes}
    wrong: list[str] = []
    for path, (scope, words) in SCOPES.items():
        monkeypatch.setenv("POSTROAD_API_KEY", without[scope])
        if run(path, words).exit_code != REFUSED:
            wrong.append(f"{path} without {scope}")
        if path in ENDLESS:
            continue
        monkeypatch.setenv("POSTROAD_API_KEY", alone[scope])
        if run(path, words).exit_code == REFUSED:
            wrong.append(f"{path} with {scope} only")
    assert wrong == []


def run(path: str, words: str) -> click.testing.Result:
    return cli_runner.run(*path.split()[1:], *words.split())


def test_a_command_of_the_installation_needs_its_settings(
    remote: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL and a key of a server are there, and not enough."""
    del remote
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1").touch()  # for those that read a file
    missing = tmp_path / "postroad.toml"
    refusal = f"Error: {missing}: cannot be read: No such file or directory\n"
    told = {
        path: run(path, f"{' '.join(required(COMMANDS[path]))} --config {missing}").stderr for path in OF_INSTALLATION
    }
    assert told == dict.fromkeys(OF_INSTALLATION, refusal)


def required(command: click.Command) -> list[str]:
    """Words for the arguments and options that a command needs."""
    words: list[str] = []
    for one in command.params:
        if not one.required:
            continue
        kind = one.type
        value = str(kind.choices[0]) if isinstance(kind, click.Choice) else "1" if kind.name != "text" else "x"
        words += [value] if isinstance(one, click.Argument) else [one.opts[0], value]
    return words
