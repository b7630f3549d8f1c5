"""An installation to operate on, and the command `postroad` in this process or in one of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click.testing
import pytest

from postroad import cli

SECRET_KEY = "of the tests: 7Yq0wT4nZs9Lr2Xd5Kf8Hb1Vc6Jm3Pg"
# A bound for a machine that is busy with other tests; a command takes half a second.
PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Installation:
    """A configuration file, and ways to run commands on it."""

    file: Path

    def run(self, *words: str, given: str | None = None) -> click.testing.Result:
        """Run a command in this process."""
        return click.testing.CliRunner().invoke(cli.main, [*words, "--config", str(self.file)], input=given)

    def text(self, *words: str, given: str | None = None) -> str:
        """What a command prints for people; it has to succeed and to print nothing on stderr."""
        result = self.run(*words, given=given)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        return result.stdout

    def json(self, *words: str, given: str | None = None) -> dict[str, Any]:
        """What a command prints for programs."""
        printed: dict[str, Any] = json.loads(self.text(*words, "--json", given=given))
        return printed

    def refusal(self, *words: str) -> str:
        """The one sentence of a command that has to fail."""
        result = self.run(*words)
        assert (result.exit_code, result.stdout) == (1, ""), result.output
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1
        return result.stderr.removeprefix("Error: ").rstrip("\n")


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/postroad.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def make_installation(tmp_path: Path) -> Callable[[str], Installation]:
    def make(url: str) -> Installation:
        file = tmp_path / "postroad.toml"
        file.write_text(f'[database]\nurl = "{url}"\n[security]\nsecret_key = "{SECRET_KEY}"\n')
        return Installation(file)

    return make


@pytest.fixture
def empty(database_url: str, make_installation: Callable[[str], Installation]) -> Installation:
    """An installation whose schema is there, and nothing else."""
    installation = make_installation(database_url)
    installation.text("migrate")
    return installation


@pytest.fixture
def installation(empty: Installation) -> Installation:
    """An installation with one account, "Shop"."""
    empty.text("account", "create", "--name", "Shop")
    return empty


def start(*words: str, folder: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `postroad` in a process of its own, in a folder of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "postroad", *words],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a process; its exit code, and what it printed on stdout and stderr."""
    try:
        stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
    return process.returncode, stdout, stderr
