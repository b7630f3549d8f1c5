"""Help and version need no import of the service, and say what the commands themselves say."""

import subprocess
import sys
from pathlib import Path

import pytest

from postroad import cli
from tests.cli import cli_runner, test_commands

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
# What only a running service, another database or a query needs.
UNUSED = {
    "asyncpg",
    "dns",
    "jinja2",
    "postroad.api",
    "postroad.dashboard",
    "postroad.delivery",
    "postroad.roles.service",
    "structlog",
    "uvloop",
}


OVER_HTTP = ("messages", "show em_1", "tail", "suppression list", "template diff .", "webhook listen --event x")


def test_every_command_is_imported_when_it_is_used() -> None:
    assert test_commands.LISTED.keys() == test_commands.COMMANDS.keys()


@pytest.mark.parametrize("path", test_commands.COMMANDS)
def test_a_command_is_listed_with_its_own_name_and_the_first_sentence_of_its_help(path: str) -> None:
    listed, command = test_commands.LISTED[path], test_commands.COMMANDS[path]
    assert (listed.name, listed.help) == (command.name, command.get_short_help_str(limit=200))


@pytest.mark.parametrize("words", ["--version", "--help", "", *(f"{group} --help" for group in cli.GROUPS), "acount"])
def test_help_and_version_import_neither_the_service_nor_its_packages(words: str) -> None:
    imported = imported_by(*words.split())
    assert "postroad.cli" in imported
    assert imported & HEAVY == set()


def test_a_short_command_imports_no_more_than_its_own_part_of_the_service(tmp_path: Path) -> None:
    installation = cli_runner.Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db")
    imported = imported_by("account", "list", "--config", str(installation.file))
    assert "postroad.storage.sqlite" in imported
    assert imported & UNUSED == set()


@pytest.mark.parametrize("words", [*OVER_HTTP, "send --from a@example.com --to b@example.net --text x"])
def test_a_command_over_http_imports_no_part_of_the_service(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTROAD_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    imported = imported_by(*words.split())
    assert "postroad.network.api_client" in imported
    assert imported & (HEAVY - {"ssl"}) == set()


def test_imported_objects_are_left_out_of_garbage_collection() -> None:
    program = "import atexit, gc; from postroad import cli; atexit.register(lambda: print(*STATE)); cli.main()"
    state = "(gc.isenabled(), gc.get_freeze_count() > 1000)"
    command = [sys.executable, "-c", program.replace("STATE", state), "completion", "bash"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "True True"


def imported_by(*words: str) -> set[str]:
    command = [sys.executable, "-c", IMPORTED, *words]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return set(printed.splitlines()[-1].split())
