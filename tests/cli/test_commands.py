"""Every command and option is explained by `--help`, of which docs/commands.md is made."""

import re
from collections.abc import Iterator

import click
import pytest

from postroad import cli
from postroad.cli.framework import lazy_commands, server_command
from tests.cli import cli_runner

EVERYWHERE = {"--data", "--config", "--json"}
OF_SERVERS = {"--url", "--data", "--config", "--account", "--json"}
# They choose the server, or need none.
ABOUT_SERVERS = {"postroad login", "postroad logout"}
RUNNERS = {
    "postroad dev",
    "postroad serve",
    "postroad webhook listen",
    "postroad init",
    "postroad deploy-files",
    "postroad completion",
}
# They print as things happen, not one report.
STREAMS = {"postroad tail", "postroad top"}


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from walk(child, f"{path} {name}")
    else:
        yield path, command


LISTED = dict(walk(cli.main, "postroad"))
COMMANDS = {path: one.load() for path, one in LISTED.items() if isinstance(one, lazy_commands.LazyCommand)}


def parameters(command: click.Command) -> list[click.Parameter]:
    own = command.get_params(click.Context(command))
    return [parameter for parameter in own if "--help" not in parameter.opts]


def names(command: click.Command) -> set[str]:
    options = {option for one in parameters(command) if isinstance(one, click.Option) for option in one.opts}
    arguments = {
        one.make_metavar(click.Context(command)).strip("[]")
        for one in parameters(command)
        if isinstance(one, click.Argument)
    }
    return options | arguments


def common(path: str) -> set[str]:
    """The options that a command has in common with others of its kind, and that are documented once."""
    if path in RUNNERS:
        return set()
    if path in ABOUT_SERVERS:
        return {"--json"}
    if path == "postroad top":  # of all accounts
        return OF_SERVERS - {"--account"}
    is_of_server = isinstance(COMMANDS[path], server_command.ServerCommand) or path in STREAMS
    return OF_SERVERS if is_of_server else EVERYWHERE


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_of_a_kind_has_the_options_of_its_kind(path: str) -> None:
    assert names(COMMANDS[path]) >= common(path)


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_explained_by_help(path: str) -> None:
    command = COMMANDS[path]
    assert command.help
    assert [one.opts for one in parameters(command) if isinstance(one, click.Option) and not one.help] == []
    result = cli_runner.run(*path.split()[1:], "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: ")


def test_the_command_alone_lists_every_command() -> None:
    printed = cli_runner.run("--help").stdout
    assert [name for name in cli.main.commands if not re.search(rf"^  {name} +\w", printed, re.MULTILINE)] == []
