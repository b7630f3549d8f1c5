"""`make publish` prints what it would do, refuses what is not ready, and runs the commands only when it is told to."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from release import publish
from tests import test_repository
from tests.test_release import git

ROOT = test_repository.ROOT
VERSION_FILES = (
    "clients/python/src/postroad_client/__init__.py",
    "clients/javascript/package.json",
    "clients/ruby/lib/postroad/version.rb",
    "clients/php/src/Client.php",
    "clients/go/client.go",
    "clients/java/pom.xml",
    "extensions/mcp/pyproject.toml",
    "extensions/postmark/pyproject.toml",
    "extensions/resend/pyproject.toml",
)
DIGEST = f"sha256:{'0123abcd' * 8}"
# What a person would type, in this order. The address of a person is not among what is printed.
COMMANDS = [
    "twine check",
    "twine upload",
    "docker buildx",
    "helm push",
    "twine check",
    "twine upload",
    "npm publish",
    "gem push",
    "git subtree",
    "git push",
    "git tag",
    "git push",
    "gh release",
]
CHANGELOG = """# Changelog

## [Unreleased]

## [0.1.0] - 2026-11-19

The first release.

## [0.0.9] - 2026-01-01
"""

pytestmark = pytest.mark.skipif(
    not (shutil.which("git") and shutil.which("gpg")), reason="git or gpg is not installed: apt-get install git gnupg"
)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An environment in which gpg has a key, and programs that only write down how they are called."""
    home, programs = tmp_path_factory.mktemp("gnupg"), tmp_path_factory.mktemp("programs")
    home.chmod(0o700)
    for name in ("twine", "npm", "gem", "helm", "docker", "gh"):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>"$CALLS"\n[ {name} != gh ] || cat >>"$CALLS"\n')
        program.chmod(0o755)
    environment = {**os.environ, "GNUPGHOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}"}
    make = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "Jo <jo@example.com>", "ed25519"]
    subprocess.run(make, env=environment, check=True, capture_output=True)
    yield environment
    subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False)


@pytest.fixture
def folder(tmp_path: Path, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A signed release in a repository, and the same files as CI made them."""
    for name in ("GNUPGHOME", "PATH"):
        monkeypatch.setenv(name, keys[name])
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    root = tmp_path / "postroad"
    for name in VERSION_FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "src" / "postroad").mkdir(parents=True)
    (root / "src" / "postroad" / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (root / "CHANGELOG.md").write_text(CHANGELOG)
    (root / ".gitignore").write_text("dist\n")
    git(root, "init")
    git(root, "config", "user.email", "jo@example.com")
    git(root, "config", "user.name", "Jo")
    git(root, "add", "--all")
    git(root, "commit", "--message", "Release 0.1.0")
    git(root, "tag", "--sign", "v0.1.0", "--message", "Postroad 0.1.0")
    dist = root / "dist"
    dist.mkdir()
    for name in publish.files(root, "0.1.0"):
        (dist / name.replace("*", "amd64")).write_text(name)
    seal(dist)
    shutil.copytree(dist, tmp_path / "ci")
    return root


def seal(dist: Path) -> None:
    for name in ("SHA256SUMS", "SHA256SUMS.asc"):
        (dist / name).unlink(missing_ok=True)
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(dist.iterdir())]
    (dist / "SHA256SUMS").write_text("".join(sums))
    sign = ["gpg", "--batch", "--armor", "--detach-sign", "--output", "SHA256SUMS.asc", "SHA256SUMS"]
    subprocess.run(sign, cwd=dist, check=True, capture_output=True)


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "release.publish", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def ready(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run(folder, "--ci", str(folder.parent / "ci"), "--image", DIGEST, *words)


def refusals(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 1
    return [line.removeprefix("  - ") for line in done.stdout.splitlines() if line.startswith("  - ")]


def test_a_release_that_is_ready_prints_what_would_publish_it_and_does_nothing(folder: Path) -> None:
    done = ready(folder)
    assert done.returncode == 0, done.stdout
    first, *lines, last = done.stdout.splitlines()
    assert first == "Postroad 0.1.0: ready to publish"
    assert [" ".join(line.split()[:2]) for line in lines] == COMMANDS
    assert lines[1].startswith("twine upload dist/postroad-0.1.0.tar.gz dist/postroad-0.1.0-py3-none-any.whl")
    assert lines[2].endswith(f" ghcr.io/postroad/postroad@{DIGEST}")
    assert lines[3] == "helm push dist/postroad-0.1.0.tgz oci://ghcr.io/postroad/charts"
    assert lines[6] == "npm publish --access public ./dist/postroad-javascript-0.1.0.tgz"
    assert {"dist/SHA256SUMS", "dist/SHA256SUMS.asc", "dist/postroad_0.1.0_amd64.deb"} <= set(lines[-1].split())
    assert last.startswith("Nothing was uploaded")
    assert not (folder.parent / "calls").exists()


def test_a_client_that_has_not_changed_is_not_published_again(folder: Path) -> None:
    printed = ready(folder, "--unchanged", "javascript", "--unchanged", "python").stdout
    assert "npm publish" not in printed
    assert printed.count("twine upload") == 1
    assert "gem push" in printed


def test_an_upload_stops_at_the_first_command_that_fails(folder: Path) -> None:
    done = ready(folder, "--upload")
    calls = (folder.parent / "calls").read_text().splitlines()
    assert [" ".join(call.split()[:2]) for call in calls] == COMMANDS[:8]
    # There is nothing to split off in this repository's only commit, and nobody to push to.
    assert re.search(r"git ended with \d+; what is printed above it was done\.", done.stderr)
    assert done.returncode == 1


def test_the_page_of_the_release_has_the_section_of_the_changelog(folder: Path) -> None:
    (last,) = publish.commands(publish.Release(folder, "0.1.0", None, DIGEST))[-1:]
    assert last.text == "The first release.\n"


def test_what_is_not_ready_is_named_and_not_uploaded(folder: Path) -> None:
    done = run(folder, "--upload")
    assert refusals(done) == [
        "no files of CI to compare with: name the folder with --ci",
        "no digest of the image: name the one of the workflow's summary with --image",
    ]
    assert done.stderr == "Nothing was uploaded.\n"
    assert not (folder.parent / "calls").exists()


def test_files_that_changed_or_lack_or_were_not_signed_are_named(folder: Path) -> None:
    dist = folder / "dist"
    (dist / "postroad-0.1.0.gem").write_text("another one")
    assert refusals(ready(folder)) == ["the checksum differs: postroad-0.1.0.gem"]
    (dist / "postroad-0.1.0.gem").unlink()
    (dist / "notes.txt").touch()
    seal(dist)
    named = refusals(ready(folder))
    assert named[0] == "dist/SHA256SUMS lacks postroad-0.1.0.gem: run make release, where all of it can be made"
    assert named[1] == "dist/SHA256SUMS names files of no release: notes.txt"
    assert named[2].endswith("/ci/SHA256SUMS differs from dist/SHA256SUMS")
    (dist / "SHA256SUMS.asc").write_text("no signature")
    assert "dist/SHA256SUMS.asc is no signature of dist/SHA256SUMS by a key that gpg knows" in refusals(ready(folder))


def test_what_nobody_has_signed_is_not_attached_to_the_release(folder: Path) -> None:
    (folder / "dist" / "postroad_0.1.0_arm64.deb").write_text("of somebody else")
    assert refusals(ready(folder)) == ["dist/SHA256SUMS does not name postroad_0.1.0_arm64.deb"]


def test_a_checksum_is_of_a_file_beside_it(folder: Path) -> None:
    (folder / "elsewhere.deb").write_text("a file")
    sums = folder / "dist" / "SHA256SUMS"
    digest = hashlib.sha256(b"a file").hexdigest()
    sums.write_text(f"{sums.read_text()}{digest}  postroad_0.1.0_/../../elsewhere.deb\n")
    named = "dist/SHA256SUMS names files of no release: postroad_0.1.0_/../../elsewhere.deb"
    assert named in refusals(ready(folder))


def test_another_commit_and_a_tag_without_a_signature_are_refused(folder: Path) -> None:
    (folder / "CHANGELOG.md").write_text("# Changelog\n")
    assert "the working tree differs from the commit" in refusals(ready(folder))
    git(folder, "commit", "--all", "--message", "Later")
    assert refusals(ready(folder)) == ["the tag v0.1.0 does not name this commit"]
    git(folder, "tag", "--force", "v0.1.0")
    assert refusals(ready(folder)) == ["the tag v0.1.0 is not signed by a key that gpg knows"]
