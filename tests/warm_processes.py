"""`postroad` in a process of its own, forked from one that has imported everything already.

A start needs no new interpreter and no imports, and some hundred tests start one. What runs is the
command itself: the process forked from was started for this, and has none of the shortcuts of tests. Each pytest worker
has one, which ends with it.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final

# Only console logs import structlog, before the service starts.
PRELOADED: Final = [
    "tests.chaos.crashing_process",
    "postroad.cli.dev.service",
    "postroad.cli.installation.serve",
    "structlog",
    "tests.warm_heap",
]


def fork(target: Any, *arguments: object, **options: object) -> ForkServerProcess:  # noqa: ANN401 - any function of a module
    """A process that is not started yet."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(PRELOADED)
    return forks.Process(target=target, args=arguments, kwargs=options, daemon=True)


class Command:
    """A running command, with those methods of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        printed: Path,
        logged: Path,
        environment: Mapping[str, str],
        folder: Path | None = None,
    ) -> None:
        options = {"printed": printed, "logged": logged, "environment": dict(environment), "folder": folder}
        self._process = fork(_run, list(words), **options)
        self._process.start()
        self.pid = self._process.pid or 0

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("postroad", timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(words: list[str], *, printed: Path, logged: Path, environment: dict[str, str], folder: Path | None) -> None:
    from postroad import cli  # noqa: PLC0415 - the process that asks for this one need not import the command

    if folder is not None:
        os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for path, number in ((printed, 1), (logged, 2)):
        output = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(output, number)
        os.close(output)
    cli.main(words, prog_name="postroad")
