"""Help and version need no import of the service, and say what the commands themselves say."""

import subprocess
import sys

import pytest

from postroad import cli
from tests.cli import test_commands

# Packages that cost a short command more than everything else it does, and those of ours that bring them.
HEAVY = {
    "apsw",
    "argon2",
    "asyncio",
    "asyncpg",
    "cryptography",
    "dns",
    "jinja2",
    "msgspec",
    "postroad.config",
    "postroad.roles",
    "postroad.services",
    "postroad.storage",
    "prometheus_client",
    "ssl",
    "structlog",
    "uvloop",
}
IMPORTED = """
import sys
from postroad import cli
try:
    cli.main()
finally:
    print(*sys.modules)
"""


def test_every_command_is_imported_when_it_is_used() -> None:
    assert test_commands.LISTED.keys() == test_commands.COMMANDS.keys()


@pytest.mark.parametrize("path", test_commands.COMMANDS)
def test_a_command_is_listed_with_its_own_name_and_the_first_sentence_of_its_help(path: str) -> None:
    listed, command = test_commands.LISTED[path], test_commands.COMMANDS[path]
    assert (listed.name, listed.help) == (command.name, command.get_short_help_str(limit=200))


@pytest.mark.parametrize("words", ["--version", "--help", "", *(f"{group} --help" for group in cli.GROUPS), "acount"])
def test_help_and_version_import_neither_the_service_nor_its_packages(words: str) -> None:
    command = [sys.executable, "-c", IMPORTED, *words.split()]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    imported = set(printed.splitlines()[-1].split())
    assert "postroad.cli" in imported
    assert imported & HEAVY == set()
