"""A wheel in an environment of its own, with the libraries that are locked for it and no others, and what it runs."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from tests import test_repository

TIMEOUT_SECONDS: Final = 900


@dataclass(frozen=True, slots=True)
class Program:
    """How `postroad` is started, and an empty folder to start it in, without a setting of this machine."""

    command: list[str]
    folder: Path

    def run(self, *words: str) -> str:
        done = subprocess.run(
            [*self.command, *words],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("POSTROAD_", "PYTHON"))}
        return {**own, "HOME": str(self.folder), "POSTROAD_CONFIG": os.devnull}


def make(folder: Path) -> None:
    """Make an environment with the libraries, by links to those that are installed here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for library in filter(None, map(_distribution, test_repository.pins("runtime"))):
        for name in {file.parts[0] for file in library.files or ()} - {"..", "__pycache__"}:
            (packages / name).symlink_to(str(library.locate_file(name)))


def install(folder: Path, wheel: Path) -> None:
    """Install a wheel into an environment, over another one that may be there."""
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    offline = ["--quiet", "--no-deps", "--no-index", "--force-reinstall", str(wheel)]
    subprocess.run([*command, *offline], check=True, capture_output=True)


def _distribution(name: str) -> metadata.Distribution | None:
    """An installed library; what is locked for other systems is not there."""
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None


class running:  # noqa: N801 - read as a phrase
    """`postroad dev` on free ports, until the block ends; it must stop in order."""

    def __init__(self, program: Program, *words: str) -> None:
        self.program, self.log = program, program.folder / "log"
        self.info = program.folder / ".postroad" / "dev.json"
        self.written_before = self._written_at()
        listen = ["--http", "127.0.0.1:0", "--smtp", "127.0.0.1:0"]
        with self.log.open("wb") as written:
            self.process = subprocess.Popen(
                [*program.command, "dev", *listen, *words],
                stdout=written,
                stderr=written,
                cwd=program.folder,
                env=program.environment(),
            )

    def __enter__(self) -> dict[str, Any]:
        give_up_at = time.monotonic() + TIMEOUT_SECONDS
        while self._written_at() in (0, self.written_before):
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < give_up_at, self.log.read_text()
            time.sleep(0.1)
        dev_info: dict[str, Any] = json.loads(self.info.read_text())
        return dev_info

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        assert self.process.wait(TIMEOUT_SECONDS) == 0, self.log.read_text()

    def _written_at(self) -> int:
        return self.info.stat().st_mtime_ns if self.info.exists() else 0
