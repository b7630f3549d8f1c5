"""Help and version need no import of the service, and say what the commands themselves say."""

import json
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
# One command after the other: none of them may import what it does not need, and neither may those before it.
IMPORTED = """
import json, sys
from postroad import cli
imported = {}
for words in json.loads(sys.argv[1]):
    try:
        cli.main(words.split())
    except SystemExit as end:
        imported[words] = [end.code, list(sys.modules)]
print()
print(json.dumps(imported))
"""
# What only a running service or a request to the API needs.
UNUSED = {
    "cryptography.x509",
    "jinja2",
    "jwt",
    "postroad.api",
    "postroad.dashboard",
    "postroad.delivery",
    "postroad.roles.service",
    "postroad.services.people.logins",
    "pyotp",
    "structlog",
    "uvloop",
}


# What a command says by its exit code when the server cannot be reached.
UNREACHABLE = 4
OVER_HTTP = (
    "messages",
    "show em_1",
    "tail",
    "suppression list",
    "template diff .",
    "webhook listen --event x",
    "send --from a@example.com --to b@example.net --text x",
)


def test_every_command_is_imported_when_it_is_used() -> None:
    assert test_commands.LISTED.keys() == test_commands.COMMANDS.keys()


@pytest.mark.parametrize("path", test_commands.COMMANDS)
def test_a_command_is_listed_with_its_own_name_and_the_first_sentence_of_its_help(path: str) -> None:
    listed, command = test_commands.LISTED[path], test_commands.COMMANDS[path]
    assert (listed.name, listed.help) == (command.name, command.get_short_help_str(limit=200))


def test_help_and_version_import_neither_the_service_nor_its_packages() -> None:
    imported = imported_by("--version", "--help", "", *(f"{group} --help" for group in cli.GROUPS), "acount")
    assert len(imported) == len(cli.GROUPS) + 4
    assert {words: found for words, (_, modules) in imported.items() if (found := modules & HEAVY)} == {}


def test_a_short_command_imports_no_more_than_its_own_part_of_the_service(tmp_path: Path) -> None:
    installation = cli_runner.Installation.at(tmp_path, url=f"sqlite:///{tmp_path}/postroad.db")
    ((_, imported),) = imported_by(f"backup {tmp_path}/copy --config {installation.file}").values()
    assert "postroad.storage.engine.sqlite" in imported
    assert imported & UNUSED == set()


def test_a_command_over_http_imports_no_part_of_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POSTROAD_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("POSTROAD_API_KEY", "pr_live_a")
    imported = imported_by(*OVER_HTTP)
    assert imported.keys() == set(OVER_HTTP)
    for words, (code, modules) in imported.items():
        assert code == UNREACHABLE, words
        assert modules & (HEAVY - {"ssl"}) == set(), words


def test_imported_objects_are_left_out_of_garbage_collection() -> None:
    program = "import atexit, gc; from postroad import cli; atexit.register(lambda: print(*STATE)); cli.main()"
    state = "(gc.isenabled(), gc.get_freeze_count() > 1000)"
    command = [sys.executable, "-c", program.replace("STATE", state), "completion", "bash"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "True True"


def imported_by(*commands: str) -> dict[str, tuple[int, set[str]]]:
    """How each command ends, and the modules that are loaded then; they run one after the other in one new process."""
    command = [sys.executable, "-c", IMPORTED, json.dumps(commands)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {words: (code, set(modules)) for words, (code, modules) in json.loads(printed.splitlines()[-1]).items()}
