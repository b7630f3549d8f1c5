"""An installation to operate on, and the command `postroad`, in this process or in one of its own."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import click.testing

from postroad import cli, config, context
from postroad.cli.framework import server_command
from postroad.roles import composition
from tests import warm_processes

T = TypeVar("T")
SECRET_KEY = "of the tests: 7Yq0wT4nZs9Lr2Xd5Kf8Hb1Vc6Jm3Pg"
# A bound for a machine that is busy with other tests; a command takes half a second.
TIMEOUT_SECONDS = 600
# Whoever asks the API on and on must not meet its limit of 25 requests per second.
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.01, 0.1


@dataclass(frozen=True, slots=True)
class Installation:
    """A configuration file, and ways to run commands on it."""

    file: Path

    @classmethod
    def at(cls, folder: Path, *, url: str) -> "Installation":
        """Write a configuration file for the store behind the URL."""
        file = folder / "postroad.toml"
        file.write_text(f'[database]\nurl = "{url}"\n[security]\ninstallation_key = "{SECRET_KEY}"\n')
        return cls(file)

    def run(self, *words: str, given: str | None = None) -> click.testing.Result:
        """Run a command in this process."""
        return run(*words, "--config", str(self.file), given=given)

    def text(self, *words: str, given: str | None = None) -> str:
        """What a command prints for people; it has to succeed, and to name at most its server on stderr."""
        result = self.run(*words, given=given)
        assert (result.exit_code, without_server(result.stderr)) == (0, ""), result.output
        return result.stdout

    def json(self, *words: str, given: str | None = None) -> dict[str, Any]:
        """What a command prints for programs."""
        printed: dict[str, Any] = json.loads(self.text(*words, "--json", given=given))
        return printed

    def refusal(self, *words: str, given: str | None = None) -> str:
        """The one sentence of a command that has to fail."""
        return sentence(self.run(*words, given=given))

    def ask(self, question: Callable[[context.Context], Awaitable[T]]) -> T:
        """Ask the services of the installation, as a process of its own would."""

        async def asking() -> T:
            async with composition.open_context(config.load(self.file, environment={})) as opened:
                return await question(opened)

        return asyncio.run(asking())


def run(*words: str, given: str | None = None) -> click.testing.Result:
    """Run a command in this process; a traceback fails the test."""
    result = click.testing.CliRunner().invoke(cli.main, list(words), input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def sentence(result: click.testing.Result) -> str:
    """What a command said that failed as a command should: one sentence on stderr, exit code 1."""
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    said = without_server(result.stderr)
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    return said.removeprefix("Error: ").rstrip("\n")


def without_server(stderr: str) -> str:
    """Without the line that names the installation, of commands that also work with a server."""
    return re.sub(r"\AServer: \S+, on this host\n", "", stderr)


def usage_error(result: click.testing.Result) -> str:
    """The sentence of a command that was used wrongly: the last line on stderr, exit code 2."""
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    return result.stderr.rstrip("\n").splitlines()[-1].removeprefix("Error: ")


def start(
    *words: str, folder: Path, environment: dict[str, str] | None = None, stdout: int = subprocess.PIPE
) -> subprocess.Popen[str]:
    """Start `postroad` in a process of its own, in a folder of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "postroad", *words],
        cwd=folder,
        env={**_own_environment(), **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Wait for a process; its exit code, and what it printed on stdout and stderr."""
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    finally:
        process.kill()
    return process.returncode, stdout, stderr


def _own_environment() -> dict[str, str]:
    """The environment without settings of whoever runs the tests, whatever the scope of the fixture that asks.

    Nor may a process find those of the machine: an empty file takes the place of its default.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith("POSTROAD_")}
    return {**own, server_command.CONFIG_VARIABLE: os.devnull}


class Service:
    """A service in a process of its own. As a context manager it is ended, at the latest, with the block."""

    def __init__(
        self, *words: str, folder: Path, environment: dict[str, str] | None = None, pipe: Path | None = None
    ) -> None:
        self.errors = folder / "stderr"
        self.printed = folder / "stdout"
        for file in (self.errors, self.printed):
            file.write_bytes(b"")
        self.process = warm_processes.Command(
            words,
            printed=pipe or self.printed,
            logged=self.errors,
            environment={**_own_environment(), **(environment or {})},
            folder=folder,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_SECONDS)

    def wait_for(self, ready: Callable[[], T | None], *, what: str) -> T:
        """Ask until there is an answer; a service that ends or takes too long fails the test with its own words."""
        give_up_at, pause = time.monotonic() + TIMEOUT_SECONDS, FIRST_PAUSE_SECONDS
        while (answer := ready()) is None:
            ended = self.process.poll() is not None
            if ended or time.monotonic() > give_up_at:
                raise AssertionError(f"{what} did not happen: {self.errors.read_text()}")
            time.sleep(pause)
            pause = min(1.5 * pause, MAX_PAUSE_SECONDS)
        return answer

    def line(self, event: str) -> dict[str, Any]:
        """The first line of the log with this event, which may have to be waited for."""

        def find() -> dict[str, Any] | None:
            lines = (
                json.loads(line) for line in self.errors.read_text().splitlines(keepends=True) if line.endswith("\n")
            )
            return next((line for line in lines if line["event"] == event), None)

        return self.wait_for(find, what=f"the line {event!r}")

    def finish(self) -> tuple[int, str, str]:
        """Wait for an end that comes by itself; the exit code, and what was printed on stdout and stderr."""
        return self.process.wait(TIMEOUT_SECONDS), self.printed.read_text(), self.errors.read_text()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal and wait for the end; the exit code, and what was printed on stdout."""
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_SECONDS), self.printed.read_text()
