"""The repository keeps its own rules: nothing of one machine, locks that lock, files of one purpose, help that helps.

The rules hold for the files of a fresh clone. They are found by walking, not by git, which a bare machine may lack.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import postroad

ROOT = Path(__file__).parent.parent
# The first statement. To parse every file for it would take seconds.
DOCSTRING = re.compile(r'(?:#.*\n|\s)*r?"""[^"]')
CEILING_LINES = 400
CODE_FOLDERS = ("src", "tests", "benchmarks", "clients", "release")
LOCKS = ("build", "development", "docs", "release", "runtime")

# What .gitignore names, and what is hidden.
PRUNED = frozenset({"__pycache__", "build", "dist", "mta", "node_modules", "target"})
KEPT_HIDDEN = frozenset({".ci", ".github"})
# Words of the field that end like an activity (docs/glossary.md).
ACTIVITIES = frozenset({"framing", "gc_tuning", "ping", "rendering", "routing", "signing", "transfer_encoding"})
LEFTOVERS = (".log", ".pyc", ".sqlite", ".sqlite-shm", ".sqlite-wal", ".swp")

# Homes and checkouts. What package managers write when they note down an origin. Neither pattern matches itself.
MACHINE_PATH = re.compile(r"(?<![\w.:/~-])/(?:home|Users|root|work|workspaces?|builds)/[\w.-]+")
REGISTRY = re.compile(
    r"--(?:extra-)?index[-]url|--find[-]links|source = \{ regi[s]try|\"resolve[d]\": \"http|python[h]osted"
)

PIN = re.compile(r"([a-z0-9-]+)==(\S+)")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAKE_RULE = re.compile(r"^([a-z][a-z-]*):(.*)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")


def repository_files() -> Iterator[Path]:
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name in KEPT_HIDDEN or not (name in PRUNED or name.startswith("."))]
        yield from (Path(folder, name) for name in files if not name.endswith(LEFTOVERS))


def text_files() -> Iterator[tuple[str, str]]:
    for path in repository_files():
        content = path.read_bytes()
        if b"\0" not in content:
            yield str(path.relative_to(ROOT)), content.decode(errors="replace")


def python_files() -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in text_files() if name.startswith(CODE_FOLDERS) and name.endswith(".py"))


def lines_that_match(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in text_files()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def lock_entries(name: str) -> list[str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def pins(name: str) -> dict[str, str]:
    return {pin[1]: pin[2] for entry in lock_entries(name) if (pin := PIN.match(entry))}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(requirements: Iterator[str] | list[str]) -> set[str]:
    return {normal(name[0]) for requirement in requirements if (name := NAME.match(requirement))}


def test_no_file_names_a_path_of_a_machine() -> None:
    assert lines_that_match(MACHINE_PATH) == []
    if len(ROOT.parts) > 2:  # a clone in "/app" would find every mention of an app
        assert lines_that_match(re.compile(re.escape(str(ROOT)))) == []


def test_no_file_names_a_registry() -> None:
    assert lines_that_match(REGISTRY) == []


@pytest.mark.parametrize("path", ["/" + "home/jo/postroad", '"/' + 'root/.cache"', "see /" + "work/main"])
def test_a_path_of_a_machine_is_recognised(path: str) -> None:
    assert MACHINE_PATH.search(path)


@pytest.mark.parametrize("path", ["src/postroad", "/etc/postroad.toml", "https://example.com/home/page", "~/code/x"])
def test_other_paths_are_fine(path: str) -> None:
    assert not MACHINE_PATH.search(path)


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_requirement_has_a_version_and_hashes(lock: str) -> None:
    entries = lock_entries(lock)
    assert entries
    assert [entry for entry in entries if not PIN.match(entry) or "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address_and_only_make_as_its_maker(lock: str) -> None:
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    assert "://" not in text
    assert text.splitlines()[1] == "#    make lock"


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_covers_its_input(lock: str) -> None:
    lines = (ROOT / "requirements" / f"{lock}.in").read_text().splitlines()
    assert wanted(lines) - pins(lock).keys() == set()


def test_tests_run_with_the_versions_that_the_service_runs_with() -> None:
    assert pins("development").items() >= (pins("runtime") | pins("build")).items()


def test_the_package_asks_for_what_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = (ROOT / "requirements" / "runtime.in").read_text().splitlines()
    assert wanted(project["project"]["dependencies"]) == wanted(runtime)
    assert wanted(project["build-system"]["requires"]) <= pins("build").keys()


def test_every_source_file_says_what_it_is() -> None:
    assert [name for name, text in python_files() if text.strip() and not DOCSTRING.match(text)] == []


def test_no_source_file_is_two_rooms() -> None:
    lengths = {name: len(text.splitlines()) for name, text in python_files() if not name.startswith("tests")}
    assert {name: length for name, length in lengths.items() if length > CEILING_LINES} == {}


def test_the_changelog_has_one_unreleased_section_and_then_this_version() -> None:
    versions = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert versions[1:2] in ([], [postroad.__version__])  # nothing is released yet


def test_modules_are_named_as_things_or_by_the_plain_verb() -> None:
    names = {Path(name).stem for name, _ in python_files() if not Path(name).stem.startswith("test_")}
    assert {name for name in names if name.endswith("ing")} - ACTIVITIES == set()


@pytest.mark.parametrize("word", ["MOST", "MAXIMUM", "LONGEST", "FEWEST", "LEAST", "MINIMUM"])
def test_limits_are_called_max_or_min(word: str) -> None:
    found = re.compile(rf"^{word}_[A-Z_]+(?::| =)", re.MULTILINE)
    assert [name for name, text in python_files() if name.startswith("src") and found.search(text)] == []


def test_every_link_inside_the_documentation_leads_somewhere() -> None:
    broken = [
        f"{name}: {link}"
        for name, text in text_files()
        if name.endswith(".md")
        for link in LINK.findall(text)
        if not (ROOT / name).parent.joinpath(link).exists()
    ]
    assert broken == []


def test_every_make_target_has_help() -> None:
    makefile = (ROOT / "Makefile").read_text()
    rules = dict(MAKE_RULE.findall(makefile))
    phony = re.search(r"^\.PHONY:(.*)$", makefile, re.MULTILINE)
    assert phony
    assert [target for target, rest in rules.items() if " ## " not in rest] == []
    assert set(phony[1].split()) == rules.keys()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_alone_prints_every_target() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    printed = subprocess.run(["make"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    for target, _ in MAKE_RULE.findall((ROOT / "Makefile").read_text()):
        assert re.search(rf"^  {target}\s+\w", printed, re.MULTILINE)


def test_ci_can_be_run() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def below(folder: str) -> set[str]:
    return {str(path.relative_to(ROOT / folder)) for path in repository_files() if path.is_relative_to(ROOT / folder)}


def test_a_wheel_and_a_source_package_carry_every_file_of_the_package_and_of_deploy(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    (wheel,), (source,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    packed = set(zipfile.ZipFile(wheel).namelist())
    assert below("src") - packed == set()
    assert {f"postroad/deploy/{name}" for name in below("deploy")} - packed == set()
    assert {f"postroad/docs/{name}" for name in below("docs") if name.endswith(".md")} - packed == set()
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    assert {f"{folder}/{name}" for folder in ("src", "deploy") for name in below(folder)} <= names
