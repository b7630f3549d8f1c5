"""Every command, argument and option is explained by `--help` and documented in docs/commands.md, and no other is."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from postroad import cli
from postroad.cli import lazy_commands
from postroad.roles import service
from tests.cli import cli_runner

DOCUMENTATION = Path(__file__).parent.parent.parent / "docs" / "commands.md"
EVERYWHERE = {"--data", "--config", "--json"}
RUNNERS = {
    "postroad dev",
    "postroad serve",
    "postroad webhook listen",
    "postroad init",
    "postroad deploy-files",
    "postroad mcp",
}


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


def sections() -> dict[str, str]:
    parts = re.split(r"^### `(postroad [a-z -]+)`$", DOCUMENTATION.read_text(), flags=re.MULTILINE)
    return {path: text.split("\n## ")[0] for path, text in zip(parts[1::2], parts[2::2], strict=True)}


def documented(section: str) -> set[str]:
    return set(re.findall(r"^\| `(--[a-z-]+|[A-Z_]+)` \|", section, re.MULTILINE))


def test_every_command_is_documented_and_no_other() -> None:
    assert sections().keys() == COMMANDS.keys()


@pytest.mark.parametrize("path", COMMANDS)
def test_every_argument_and_option_is_documented_and_no_other(path: str) -> None:
    wanted = names(COMMANDS[path]) - (set() if path in RUNNERS else EVERYWHERE)
    assert documented(sections()[path]) == wanted


@pytest.mark.parametrize("path", [path for path in COMMANDS if path not in RUNNERS])
def test_every_operator_command_takes_an_installation_and_can_print_json(path: str) -> None:
    assert names(COMMANDS[path]) >= EVERYWHERE


def test_the_options_of_every_operator_command_are_documented() -> None:
    introduction = DOCUMENTATION.read_text().split("## Operate an installation")[1].split("### ")[0]
    assert documented(introduction) == EVERYWHERE


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_and_option_is_explained_by_help(path: str) -> None:
    command = COMMANDS[path]
    assert command.help
    assert [one.opts for one in parameters(command) if isinstance(one, click.Option) and not one.help] == []
    result = cli_runner.run(*path.split()[1:], "--help")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("Usage: ")


def test_every_role_is_documented() -> None:
    assert set(re.findall(r"^\| `([a-z]+)` \|", sections()["postroad serve"], re.MULTILINE)) == service.ROLES.keys()


def test_the_command_alone_lists_every_command() -> None:
    printed = cli_runner.run("--help").stdout
    assert [name for name in cli.main.commands if not re.search(rf"^  {name} +\w", printed, re.MULTILINE)] == []
