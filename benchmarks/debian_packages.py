"""Packages of a release of Debian, unpacked into folders: nothing is installed, and no maintainer script runs.

The machine may run another release, so a folder holds all that its packages need, from the C library up. The archive is
one that the machine's own package sources name, whatever release they take from it.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import typing

KEYRINGS = tuple(pathlib.Path("/usr/share/keyrings", f"debian-archive-keyring.{suffix}") for suffix in ("pgp", "gpg"))
# What the package base-files would bring: the folders of before are links.
MERGED = ("bin", "sbin", "lib", "lib64")


class UnavailableError(Exception):
    """The packages cannot be had here; the text says why, for people."""


@contextlib.contextmanager
def release(name: str, *, folder: pathlib.Path) -> typing.Iterator["Release"]:
    """The packages of a release, for as long as the context lasts; `folder` is where the roots will be."""
    if os.geteuid() != 0:
        raise UnavailableError("only root can unpack packages of Debian")
    if missing := [program for program in ("apt-get", "dpkg-deb") if shutil.which(program) is None]:
        raise UnavailableError(f"{' and '.join(missing)} of Debian is not on this machine")
    keyring = next((path for path in KEYRINGS if path.exists()), None)
    if keyring is None:
        raise UnavailableError("the keys of Debian's archive are not on this machine: install debian-archive-keyring")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder) as temporary:
        reason = ""
        for archive in archives():
            found = Release(pathlib.Path(temporary), source=f"deb [signed-by={keyring}] {archive} {name} main\n")
            try:
                found.run("update")
            except UnavailableError as error:
                reason = f": {error}"
                continue
            yield found
            return
        raise UnavailableError(f"no package source of this machine has the release {name} of Debian{reason}")


def archives() -> list[str]:
    """The archives of the machine's package sources, in their order, with or without lists of what is in them."""
    command = ["apt-get", "indextargets", "--no-release-info", "--format", "$(REPO_URI)", "Created-By: Packages"]
    return list(dict.fromkeys(_output(command).split()))


class Release:
    """An apt-get that believes that nothing is installed, and writes nothing outside its folder."""

    def __init__(self, folder: pathlib.Path, *, source: str) -> None:
        self._folder = folder
        (folder / "lists" / "partial").mkdir(parents=True, exist_ok=True)
        (folder / "sources.list").write_text(source)
        (folder / "status").touch()  # not /dev/null: locks are beside it
        self._options = {
            "Dir::Etc::SourceList": f"{folder}/sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State": str(folder),
            "Dir::State::Lists": f"{folder}/lists",
            "Dir::State::Status": f"{folder}/status",
            "Dir::Cache": str(folder),
            "APT::Install-Recommends": "false",
            "APT::Sandbox::User": "root",
            # A list that cannot be had is a failure, not a warning.
            "APT::Update::Error-Mode": "any",
        }

    def run(self, *words: str, archives: pathlib.Path | None = None) -> None:
        """Run apt-get."""
        options = self._options | ({"Dir::Cache::Archives": str(archives)} if archives else {})
        settings = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        _output(["apt-get", "-qq", "-y", *settings, *words])

    def unpack(self, *packages: str, root: pathlib.Path) -> None:
        """Unpack packages with all that they need into a new root, in place of what is there.

        The file `version` in it tells the version of the first one.
        """
        files = self._folder / f"{packages[0]}-archives"
        (files / "partial").mkdir(parents=True)
        self.run("install", "--download-only", *packages, archives=files)
        new = self._folder / f"{packages[0]}-root"
        for name in MERGED:
            (new / "usr" / name).mkdir(parents=True)
            (new / name).symlink_to(f"usr/{name}")
        for name in ("etc", "var", "dev", "proc"):
            (new / name).mkdir()
        for file in files.glob("*.deb"):
            _output(["dpkg-deb", "--extract", str(file), str(new)])
            if file.name.startswith(f"{packages[0]}_"):
                (new / "version").write_text(_output(["dpkg-deb", "--field", str(file), "Version"]))
        shutil.rmtree(root, ignore_errors=True)
        new.rename(root)  # last: a root that is there is whole


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except subprocess.CalledProcessError as error:
        raise UnavailableError(error.stderr.strip() or f"{command[0]} ended with {error.returncode}") from error
