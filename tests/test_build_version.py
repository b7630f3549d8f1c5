"""Every build has a version of its own: a release its number, any other commit one that pip finds newer."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from packaging.version import Version

import postroad
from postroad import build_version
from tests import test_repository
from tests.test_release import git

BASE = postroad.__version__
PAGE = (test_repository.ROOT / "docs" / "production.md").read_text()
TIMEOUT_SECONDS = 900

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def commit(repository: Path, name: str) -> None:
    """A commit that changes what a wheel contains."""
    (repository / "docs" / f"{name}.md").write_text(f"# {name}\n")
    git(repository, "add", "--all")
    git(repository, "commit", "--message", name)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with what the package is built from, and one commit."""
    folder = tmp_path_factory.mktemp("repository")
    for name in ("src", "deploy", "docs/decisions", "requirements"):
        for file in test_repository.repository_files(name):
            copy = folder / file.relative_to(test_repository.ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(test_repository.ROOT / name, folder / name)
    git(folder, "init")
    commit(folder, "first")
    return folder


def clone(repository: Path, folder: Path) -> Path:
    git(repository, "clone", "--quiet", str(repository), str(folder))
    return folder


def test_each_commit_has_a_version_that_is_higher_than_the_one_before(repository: Path, tmp_path: Path) -> None:
    checkout = clone(repository, tmp_path / "checkout")
    first = build_version.of_commit(checkout)
    assert re.fullmatch(re.escape(f"{BASE}.dev1+g") + "[0-9a-f]{8}", first)
    commit(checkout, "second")
    second = build_version.of_commit(checkout)
    assert re.fullmatch(re.escape(f"{BASE}.dev2+g") + "[0-9a-f]{8}", second)
    assert Version(first) < Version(second) < Version(BASE)
    # Both are as PEP 440 writes them: the file of a wheel has the same name.
    assert (str(Version(first)), str(Version(second))) == (first, second)


def test_a_tagged_release_has_the_plain_version_and_changed_files_are_named(repository: Path, tmp_path: Path) -> None:
    checkout = clone(repository, tmp_path / "checkout")
    untagged = build_version.of_commit(checkout)
    git(checkout, "tag", f"v{BASE}", "--annotate", "--message", "Release")
    assert build_version.of_commit(checkout) == BASE
    (checkout / "README.md").write_text("changed")
    assert build_version.of_commit(checkout) == f"{untagged}.dirty"
    git(checkout, "checkout", "README.md")
    git(checkout, "tag", "v0.0.9")
    assert build_version.of_commit(checkout) == BASE


def test_a_source_archive_without_history_has_a_valid_version(repository: Path, tmp_path: Path) -> None:
    # The repository around it is another one.
    git(tmp_path, "init")
    archive = tmp_path / "archive"
    shutil.copytree(repository, archive, ignore=shutil.ignore_patterns(".git"))
    assert build_version.of_commit(archive) == f"{BASE}.dev0"
    command = [sys.executable, "-m", "hatchling", "version"]
    assert subprocess.run(command, cwd=archive, capture_output=True, text=True, check=True).stdout == f"{BASE}.dev0\n"


def test_a_wheel_from_a_source_package_has_the_version_of_its_commit(repository: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t"]
    subprocess.run([*command, "sdist"], cwd=repository, check=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    shutil.unpack_archive(archive, tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    subprocess.run([*command, "wheel"], cwd=unpacked, check=True)
    assert (tmp_path / f"postroad-{build_version.of_commit(repository)}-py3-none-any.whl").exists()


def test_a_checkout_whose_history_cannot_be_read_has_a_valid_version(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    assert build_version.of_commit(tmp_path) == f"{BASE}.dev0"
    monkeypatch.setenv("PATH", str(tmp_path))  # without git
    assert build_version.of_commit(repository) == f"{BASE}.dev0"


def test_the_version_of_a_checkout_follows_its_commits(repository: Path, tmp_path: Path) -> None:
    checkout = clone(repository, tmp_path / "checkout")
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    for number in (1, 2):
        command = [sys.executable, "-m", "postroad", "--version"]
        shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        assert re.fullmatch(re.escape(f"postroad, version {BASE}.dev{number}+g") + "[0-9a-f]{8}\n", shown)
        commit(checkout, f"later-{number}")


class Host:
    """A host whose operator follows docs/production.md.

    It differs from a real one: everything is below one folder; packages of Debian, users and systemd are left alone;
    the repository is a local one; and pip, which has no network, finds the locked versions among those of the tests.
    """

    COMMANDS = ("cd ", "git ", "ln ", "postroad --version", "python3 -m venv ", "/opt/postroad/bin/pip ")

    def __init__(self, folder: Path, repository: Path) -> None:
        self._places = {"/opt/": f"{folder}/opt/", "/usr/local/": f"{folder}/usr/local/"}
        self._places["https://github.com/postroad/postroad.git"] = str(repository)
        packages, found = folder / "packages", Path(sysconfig.get_path("purelib"))
        for name in ("opt", "packages", "usr/local/bin", "usr/local/src"):
            (folder / name).mkdir(parents=True)
        for package in found.iterdir():
            if not package.name.startswith(("_", "pip", "postroad")):
                (packages / package.name).symlink_to(package)
        # The page leaves the operator in the folder of the last command.
        self._script = ["set -e", f"cd {folder}"]
        self._environment = {
            **os.environ,
            "PATH": f"{folder}/usr/local/bin:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(packages),
            "PIP_NO_INDEX": "1",
            "PIP_NO_COMPILE": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def follow(self, heading: str) -> str:
        """Run the commands of a section, and return the version that is shown at the end."""
        section = re.split(r"^#+ ", PAGE.split(f"\n{heading}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]
        lines = "".join(re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)).splitlines()
        script = "\n".join([*self._script, *(line for line in lines if line.startswith(self.COMMANDS))])
        for place, ours in self._places.items():
            script = script.replace(place, ours)
        done = subprocess.run(
            ["sh"],
            input=script,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.splitlines()[-1].removeprefix("postroad, version ")


def test_the_documented_commands_install_a_build_and_upgrade_it_to_a_later_one(
    repository: Path, tmp_path: Path
) -> None:
    origin = clone(repository, tmp_path / "origin")
    host = Host(tmp_path / "host", origin)
    first = host.follow("### With pip")
    assert first == build_version.of_commit(origin)
    commit(origin, "upgrade")
    second = host.follow("#### Upgrade with pip")
    assert second == build_version.of_commit(origin)
    assert Version(first) < Version(second)
