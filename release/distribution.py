"""Builds the sdist or the wheel of a package, with the version and the time of a commit in it."""

import os
import subprocess
import sys
from pathlib import Path


class BuildError(Exception):
    """A package cannot be built; the text says why."""


def build(package: Path, target: str, folder: Path, *, version: str, seconds: int) -> None:
    """Build into a folder. The same files, version and time make the same bytes."""
    environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": str(seconds),
        "PYTHONDONTWRITEBYTECODE": "1",
        "POSTROAD_BUILD_VERSION": version,
    }
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=package, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"the {target} cannot be built:\n{done.stdout}{done.stderr}")


def packages(source: Path) -> list[Path]:
    """The folders of the service and of its extensions."""
    return [source, *sorted(path.parent for path in source.glob("extensions/*/pyproject.toml"))]
