"""Every build has a version of its own: a release its number, any other commit one that pip finds newer."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

import postroad
from postroad import build_version
from tests import test_repository
from tests.test_release import git

BASE = postroad.__version__

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


def test_a_checkout_whose_history_cannot_be_read_builds_nothing(tmp_path: Path) -> None:
    # A wheel without a version of its own would be an upgrade that pip leaves out.
    (tmp_path / ".git").mkdir()
    with pytest.raises(ChildProcessError, match="git describe: fatal: not a git repository"):
        build_version.of_commit(tmp_path)


def test_the_version_of_a_checkout_follows_its_commits(repository: Path, tmp_path: Path) -> None:
    checkout = clone(repository, tmp_path / "checkout")
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    for number in (1, 2):
        command = [sys.executable, "-m", "postroad", "--version"]
        shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        assert re.fullmatch(re.escape(f"postroad, version {BASE}.dev{number}+g") + "[0-9a-f]{8}\n", shown)
        commit(checkout, f"later-{number}")
