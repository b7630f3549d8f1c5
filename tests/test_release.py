"""`make release` makes the same bytes anywhere, from a clean commit with a changelog, and lists what is in them."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import postroad
from release import sbom
from tests import test_repository
from tests.reliability import profile

VERSION = postroad.__version__
WHEEL, SDIST, BILL = (f"postroad-{VERSION}{ending}" for ending in ("-py3-none-any.whl", ".tar.gz", ".cdx.json"))
CONTEXT, CHART = f"postroad-image-{VERSION}.tar.gz", f"postroad-{VERSION}.tgz"
EXTENSIONS = ("postroad-mcp", "postroad-postmark", "postroad-resend")
WHEELS = [f"{name.replace('-', '_')}-{VERSION}-py3-none-any.whl" for name in EXTENSIONS]
# The files of the client libraries: what Python alone can make, and what needs the tools of a language.
CLIENTS = (
    "postroad-go-0.1.0.zip",
    "postroad-php-0.1.0.zip",
    "postroad_client-0.1.0-py3-none-any.whl",
    "postroad_client-0.1.0.tar.gz",
)
WITH_TOOLS = {"postroad-javascript-0.1.0.tgz": "npm", "postroad-0.1.0.gem": "gem", "postroad-client-0.1.0.jar": "mvn"}
# What a release consists of where none of these tools is.
FILES = {WHEEL, *WHEELS, SDIST, BILL, CONTEXT, CHART, *CLIENTS, "SHA256SUMS"}
LOCKS = [(test_repository.ROOT / "requirements" / f"{name}.txt").read_text() for name in ("runtime", "extensions")]
# Most of the sdist, and nothing of the wheel or the bill of materials: to build it takes longer and shows nothing more.
SKIPPED = () if profile.IS_LONG else ("benchmarks/", "docs/screenshots/", "tests/")
NOT_SKIPPED = ("docs/screenshots/README.md",)

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(folder: Path, *words: str) -> None:
    names = {"GIT_AUTHOR_NAME": "Jo", "GIT_AUTHOR_EMAIL": "jo@example.com"}
    names |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in names.items()}
    settings = ["-c", "core.hooksPath=", "-c", "commit.gpgSign=false", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *settings, *words], cwd=folder, env={**os.environ, **names}, capture_output=True, check=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of this one and a changelog that is ready."""
    folder = tmp_path_factory.mktemp("first") / "postroad"
    hidden = [test_repository.ROOT / ".gitignore"]
    for file in (*test_repository.repository_files(), *hidden):
        name = str(file.relative_to(test_repository.ROOT))
        if name.startswith(SKIPPED) and not name.startswith(NOT_SKIPPED):
            continue
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    changelog = folder / "CHANGELOG.md"
    text = changelog.read_text()
    if f"\n## [{VERSION}]" not in text:
        ready = f"## [Unreleased]\n\n## [{VERSION}] - 2026-11-17\n"
        changelog.write_text(text.replace("## [Unreleased]\n", ready, 1))
    git(folder, "init")
    git(folder, "add", "--all")
    git(folder, "commit", "--message", "Release")
    return folder


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the only programs that a release needs."""
    folder = tmp_path_factory.mktemp("programs")
    for name in ("git", "gzip", "tar"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return folder


def release(folder: Path, *words: str, programs: Path | None, umask: int = 0o022) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, "-m", "release", *words],
        cwd=folder,
        env={**environment, "PATH": str(programs)} if programs else environment,
        capture_output=True,
        text=True,
        check=False,
        umask=umask,
    )


@pytest.fixture(scope="module")
def done(repository: Path, programs: Path) -> subprocess.CompletedProcess[str]:
    made = release(repository, programs=programs)
    assert made.returncode == 0, made.stderr
    return made


@pytest.fixture(scope="module")
def made(repository: Path, done: subprocess.CompletedProcess[str]) -> Path:
    assert done.returncode == 0
    return repository / "dist"


@pytest.fixture(scope="module")
def bill(made: Path) -> Any:  # noqa: ANN401 - JSON
    return json.loads((made / BILL).read_text())


def contents(folder: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(folder / WHEEL) as wheel:
        yield from ((f"wheel/{name}", wheel.read(name)) for name in wheel.namelist())
    with tarfile.open(folder / SDIST) as sdist:
        for member in sdist.getmembers():
            file = sdist.extractfile(member)
            yield f"sdist/{member.name}", file.read() if file else b""
    yield BILL, (folder / BILL).read_bytes()
    yield "SHA256SUMS", (folder / "SHA256SUMS").read_bytes()


def hashes(dist: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in dist.iterdir()}


def test_the_same_commit_gives_the_same_bytes_in_another_folder(
    repository: Path, made: Path, programs: Path, tmp_path: Path
) -> None:
    other = tmp_path / "another" / "place"
    git(repository, "clone", "--quiet", str(repository), str(other))
    (other / "dist").mkdir()
    (other / "dist" / "of-an-earlier-release").touch()
    again = release(other, programs=programs, umask=0o077)
    assert again.returncode == 0, again.stderr
    assert hashes(other / "dist") == hashes(made)
    assert hashes(made).keys() == FILES


def test_what_cannot_be_made_here_is_named_and_an_error_if_all_is_wanted(
    repository: Path, done: subprocess.CompletedProcess[str], programs: Path
) -> None:
    for name in FILES:
        assert f"  {name} " in done.stdout
    reasons = {name: f"{tool} is not installed" for name, tool in WITH_TOOLS.items()}
    reasons |= {f"postroad_{VERSION}_*.deb": "dpkg-deb is not installed"}
    left_out = dict(line.removeprefix("LEFT OUT: ").split(": ") for line in done.stdout.splitlines() if "LEFT" in line)
    assert left_out == reasons
    before = hashes(repository / "dist")
    refused = release(repository, "--complete", programs=programs)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("No release: postroad_")
    assert all(f"{name}: {reason}" in refused.stderr for name, reason in reasons.items())
    assert hashes(repository / "dist") == before


def test_a_client_is_packed_with_what_its_registry_takes(made: Path) -> None:
    with zipfile.ZipFile(made / "postroad-php-0.1.0.zip") as archive:
        php = set(archive.namelist())
    assert {"postroad-php-0.1.0/composer.json", "postroad-php-0.1.0/src/Client.php"} <= php
    assert not {name for name in php if "/tests/" in name or "/conformance/" in name}
    root = "github.com/postroad/postroad/clients/go@v0.1.0"
    with zipfile.ZipFile(made / "postroad-go-0.1.0.zip") as archive:
        go = set(archive.namelist())
    assert go == {f"{root}/{name}" for name in below("clients/go")}


def test_the_build_context_of_the_image_has_what_the_image_is_built_from(made: Path) -> None:
    with tarfile.open(made / CONTEXT) as archive:
        members = archive.getmembers()
    names = {member.name for member in members}
    assert {"deploy/Dockerfile", "requirements/runtime.txt", "src/postroad/__init__.py", "pyproject.toml"} <= names
    assert not {name for name in names if name.startswith(("tests/", "clients/", "release/"))}
    assert {(member.uid, member.gid, member.mode) for member in members} == {(0, 0, 0o644)}


def below(folder: str) -> set[str]:
    return {str(path.relative_to(test_repository.ROOT / folder)) for path in test_repository.repository_files(folder)}


def test_a_wheel_and_a_source_package_carry_every_file_of_the_package_and_of_deploy(made: Path) -> None:
    packed = set(zipfile.ZipFile(made / WHEEL).namelist())
    assert below("src") - packed == set()
    assert {f"postroad/deploy/{name}" for name in below("deploy")} - packed == set()
    assert {f"postroad/docs/{name}" for name in below("docs") if name.endswith(".md")} - packed == set()
    with tarfile.open(made / SDIST) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert {f"{folder}/{name}" for folder in ("src", "deploy") for name in below(folder)} <= names


def test_the_checksums_are_those_of_all_files(made: Path) -> None:
    lines = [
        f"{hashlib.sha256((made / name).read_bytes()).hexdigest()}  {name}" for name in sorted(FILES - {"SHA256SUMS"})
    ]
    assert (made / "SHA256SUMS").read_text().splitlines() == lines


def test_nothing_names_a_registry_or_a_path_of_the_machine(repository: Path, made: Path) -> None:
    folders = [str(repository).encode(), str(test_repository.ROOT).encode(), sys.prefix.encode()]
    found = []
    for name, content in contents(made):
        found += [f"{name}: {folder!r}" for folder in folders if folder in content]
        if b"\0" not in content:
            text = content.decode(errors="replace")
            patterns = (test_repository.MACHINE_PATH, test_repository.REGISTRY)
            found += [f"{name}: {match[0]}" for one in patterns for match in one.finditer(text)]
    assert found == []


def test_a_changed_working_tree_is_refused_and_keeps_what_was_made(repository: Path, made: Path) -> None:
    before = sorted(file.name for file in made.iterdir())
    (repository / "notes.txt").touch()
    try:
        refused = release(repository, programs=None)
    finally:
        (repository / "notes.txt").unlink()
    assert refused.returncode == 1
    assert refused.stderr == (
        "No release: the working tree differs from the commit; commit or remove what is there first:\n?? notes.txt\n"
    )
    assert sorted(file.name for file in made.iterdir()) == before


def test_a_version_without_a_section_in_the_changelog_is_refused(repository: Path, made: Path, tmp_path: Path) -> None:
    other = tmp_path / "place"
    git(repository, "clone", "--quiet", str(repository), str(other))
    changelog = other / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace(f"## [{VERSION}] - ", f"## [{VERSION}] of "))
    git(other, "commit", "--all", "--message", "Forget the date")
    refused = release(other, programs=None)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"No release: CHANGELOG.md has no section for version {VERSION}; rename")
    assert not (other / "dist").exists()


def test_the_bill_lists_every_locked_package_with_version_hashes_and_licence(bill: Any) -> None:  # noqa: ANN401 - JSON
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == f"pkg:pypi/postroad@{VERSION}"
    packages = {one["name"]: one for one in bill["components"] if one["purl"].startswith("pkg:pypi/")}
    locked = {pin.name: pin for lock in LOCKS for pin in sbom.read_lock(lock)}
    assert locked.keys() >= test_repository.pins("runtime").keys() | {"mcp", "httpx2"}
    versions = {name: pin.version for name, pin in locked.items()} | dict.fromkeys(EXTENSIONS, VERSION)
    assert {name: one["version"] for name, one in packages.items()} == versions
    hashes = sorted(digest["content"] for one in packages.values() for digest in one.get("hashes", []))
    assert hashes == sorted(digest for pin in locked.values() for digest in pin.hashes)
    assert all(one["licenses"] for one in packages.values())
    assert packages["asyncpg"]["licenses"] == [{"expression": "Apache-2.0"}]
    assert packages["jinja2"]["licenses"] == [{"license": {"name": "BSD License"}}]


def test_the_bill_lists_what_the_package_carries_with_the_hash_of_each_file(bill: Any) -> None:  # noqa: ANN401 - JSON
    carried = {one["name"]: one for one in bill["components"] if one["purl"].startswith("pkg:npm/")}
    assert carried.keys() == {"swagger-ui-dist", "uplot", "@fontsource/inter", "caniemail"}
    assert carried["@fontsource/inter"]["purl"] == "pkg:npm/%40fontsource/inter@5.3.0"
    assert carried["@fontsource/inter"]["licenses"] == [{"license": {"id": "OFL-1.1"}}]
    files = {
        file["name"]: file["hashes"] for one in carried.values() for file in one["components"] if file["type"] == "file"
    }
    script = next((test_repository.ROOT / "src").rglob("uPlot.iife.min.js"))
    digest = hashlib.sha256(script.read_bytes()).hexdigest()
    assert files["uPlot.iife.min.js"] == [{"alg": "SHA-256", "content": digest}]


def test_the_bill_says_which_package_needs_which(bill: Any) -> None:  # noqa: ANN401 - JSON
    needs = {one["ref"]: set(one["dependsOn"]) for one in bill["dependencies"]}
    names = {one["name"]: one["bom-ref"] for one in bill["components"]}
    assert {names["acme"], names["asyncpg"], names["uplot"]} <= needs[f"pkg:pypi/postroad@{VERSION}"]
    assert names["cffi"] not in needs[f"pkg:pypi/postroad@{VERSION}"]
    assert names["requests"] in needs[names["acme"]]
    reached: set[str] = set()
    waiting = [f"pkg:pypi/postroad@{VERSION}"]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += needs.get(one, set())
    assert set(names.values()) <= reached


def test_every_reference_of_the_bill_is_unique(bill: Any) -> None:  # noqa: ANN401 - JSON
    def references(components: Any) -> Iterator[str]:  # noqa: ANN401 - JSON
        for one in components:
            yield one["bom-ref"]
            yield from references(one.get("components", []))

    found = [bill["metadata"]["component"]["bom-ref"], *references(bill["components"])]
    assert len(found) == len(set(found))


def test_a_package_that_is_not_installed_as_locked_is_named(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    lock = tmp_path / "requirements" / "runtime.txt"
    (tmp_path / "requirements" / "extensions.txt").touch()
    shutil.copy(test_repository.ROOT / "pyproject.toml", tmp_path)
    of = sbom.Release(version=VERSION, commit="0" * 40, seconds=0)
    for text, sentence in (
        ("absent-package==1.0 \\\n", "absent-package 1.0 is not installed, so its licence is not known"),
        ("click==0.1 \\\n", "but locked as 0.1"),
    ):
        lock.write_text(text)
        with pytest.raises(sbom.SbomError, match=sentence):
            sbom.text(tmp_path, of)
