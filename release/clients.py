"""The client libraries as the files that their registries take.

Python, PHP and Go need nothing but Python. The others are packed by the tool of their language: its version can show in
the bytes.
"""

import datetime as dt
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from release import archives, distribution

# Where each client has its version.
VERSIONS: Final[Mapping[str, tuple[str, str]]] = {
    "python": ("src/postroad_client/__init__.py", r'^__version__ = "(.+)"$'),
    "javascript": ("package.json", r'^  "version": "(.+)",$'),
    "ruby": ("lib/postroad/version.rb", r'^  VERSION = "(.+)"$'),
    "php": ("src/Client.php", r"VERSION = '(.+)';$"),
    "go": ("client.go", r'^const Version = "(.+)"$'),
    "java": ("pom.xml", r"^  <version>(.+)</version>$"),
}
GO_MODULE: Final = "github.com/postroad/postroad/clients/go"
# What Packagist leaves to the repository.
PHP_EXCLUDED: Final = ("conformance/", "tests/", "phpunit.xml")
# What Maven says first of a failure is a long line.
MAX_REASON: Final = 160


class MissingToolError(Exception):
    """A file cannot be made on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Work:
    """A client to pack: its folder in the files of the commit, its version, and where its files go."""

    folder: Path
    version: str
    made: Path
    seconds: int


def versions(source: Path) -> Mapping[str, str]:
    """The version of each client."""
    return {client: _version(source, client) for client in VERSIONS}


def names(source: Path) -> Mapping[str, tuple[str, ...]]:
    """The files of each client."""
    version = versions(source)
    return {
        "python": (
            f"postroad_client-{version['python']}.tar.gz",
            f"postroad_client-{version['python']}-py3-none-any.whl",
        ),
        # Not the name that npm gives it: the package of the Helm chart has that.
        "javascript": (f"postroad-javascript-{version['javascript']}.tgz",),
        "ruby": (f"postroad-{version['ruby']}.gem",),
        "php": (f"postroad-php-{version['php']}.zip",),
        "go": (f"postroad-go-{version['go']}.zip",),
        "java": (f"postroad-client-{version['java']}.jar",),
    }


def build(source: Path, made: Path, *, seconds: int) -> Mapping[str, str]:
    """Build all files into a folder. The result is why each one that is left out cannot be made here."""
    left_out: dict[str, str] = {}
    for client, files in names(source).items():
        work = Work(source / "clients" / client, _version(source, client), made, seconds)
        try:
            PACKERS[client](work, *files)
        except MissingToolError as problem:
            left_out.update(dict.fromkeys(files, str(problem)))
    return left_out


def _version(source: Path, client: str) -> str:
    file, pattern = VERSIONS[client]
    text = (source / "clients" / client / file).read_text(encoding="utf-8")
    found = re.search(pattern, text, re.MULTILINE)
    if found is None:
        raise distribution.BuildError(f"clients/{client}/{file} names no version")
    return found[1]


def _pack_python(work: Work, *_files: str) -> None:
    for target in ("sdist", "wheel"):
        distribution.build(work.folder, target, work.made, version=work.version, seconds=work.seconds)


def _pack_javascript(work: Work, file: str) -> None:
    _run(work, "npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", str(work.folder))
    shutil.move(work.folder / f"postroad-{work.version}.tgz", work.made / file)


def _pack_ruby(work: Work, file: str) -> None:
    _run(work, "gem", "build", "--strict", "--silent", "postroad.gemspec", "--output", str(work.made / file))


def _pack_php(work: Work, file: str) -> None:
    kept = {name: path for name, path in _files(work).items() if not name.startswith(PHP_EXCLUDED)}
    root = file.removesuffix(".zip")
    archives.write_zip(work.made / file, {f"{root}/{name}": path for name, path in kept.items()}, seconds=work.seconds)


def _pack_go(work: Work, file: str) -> None:
    """As a proxy of modules stores it: what the tag of the module contains, below its name and version."""
    root = f"{GO_MODULE}@v{work.version}"
    named = {f"{root}/{name}": path for name, path in _files(work).items()}
    archives.write_zip(work.made / file, named, seconds=work.seconds)


def _pack_java(work: Work, file: str) -> None:
    at = dt.datetime.fromtimestamp(work.seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    options = (
        "--batch-mode",
        "--quiet",
        "-Dstyle.color=never",
        "-Dmaven.test.skip=true",
        f"-Dproject.build.outputTimestamp={at}",
    )
    try:
        _run(work, "mvn", *options, "package")
    except distribution.BuildError as problem:
        # Most often it cannot get its plugins. `make test-clients` shows whether the code compiles.
        reason = str(problem).partition("[ERROR] ")[2].partition("\n")[0]
        raise MissingToolError(f"Maven fails: {reason[:MAX_REASON]}") from None
    shutil.move(work.folder / "target" / file, work.made / file)


PACKERS: Final[Mapping[str, Callable[..., None]]] = {
    "python": _pack_python,
    "javascript": _pack_javascript,
    "ruby": _pack_ruby,
    "php": _pack_php,
    "go": _pack_go,
    "java": _pack_java,
}


def _files(work: Work) -> Mapping[str, Path]:
    return {str(path.relative_to(work.folder)): path for path in work.folder.rglob("*") if path.is_file()}


def _run(work: Work, program: str, *words: str) -> None:
    if shutil.which(program) is None:
        raise MissingToolError(f"{program} is not installed")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(work.seconds), "NO_COLOR": "1"}
    done = subprocess.run(
        [program, *words],
        cwd=work.folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        umask=0o022,
    )
    if done.returncode:
        raise distribution.BuildError(f"{program} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
