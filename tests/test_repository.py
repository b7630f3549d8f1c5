"""The repository keeps its own rules: nothing of one machine, locks that lock, files of one purpose, help that helps.

The rules hold for the files of a fresh clone. They are found by walking, not by git, which a bare machine may lack.
"""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.version import Version

import postroad

ROOT = Path(__file__).parent.parent
# The first statement. Parsing every file would take seconds.
DOCSTRING = re.compile(r'(?:#.*\n|\s)*r?"""[^"]')
CODE_FOLDERS = ("src", "extensions", "tests", "benchmarks", "clients", "release")
LOCKS = ("build", "development", "docs", "extensions", "release", "runtime")

# What .gitignore names, and what is hidden.
PRUNED = frozenset({"__pycache__", "build", "dist", "mta", "node_modules", "target"})
KEPT_HIDDEN = frozenset({".ci", ".github"})
# Words of the field that end like an activity (docs/glossary.md).
ACTIVITIES = frozenset({"framing", "monitoring", "ping", "rendering", "routing", "signing", "transfer_encoding"})
LEFTOVERS = (".log", ".pyc", ".sqlite", ".sqlite-shm", ".sqlite-wal", ".swp")

# Homes and checkouts. What package managers write when they note down an origin. Neither pattern matches itself. The
# lookbehind comes after the slash: many times as fast as before it.
MACHINE_PATH = re.compile(r"/(?<![\w.:/~-]/)(?:home|Users|root|work|workspaces?|builds)/[\w.-]+")
REGISTRY = re.compile(
    r"--(?:extra-)?index[-]url|--find[-]links|source = \{ regi[s]try|\"resolve[d]\": \"http|python[h]osted|deb[.]debian"
)

PIN = re.compile(r"([a-z0-9-]+)==(\S+)")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
MAKE_RULE = re.compile(r"^([a-z][a-z-]*):(.*)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
SOURCE_FILE = re.compile(r"(?<![\w*{}.])(?:[\w.-]+/)*[\w-]+\.py\b")
# A file of another program, in an example.
FOREIGN_FILES = frozenset({"settings.py"})


def repository_files(under: str = "") -> Iterator[Path]:
    for folder, folders, files in os.walk(ROOT / under):
        folders[:] = [name for name in folders if name in KEPT_HIDDEN or not (name in PRUNED or name.startswith("."))]
        # In a linked worktree .git is a file, and whoever works in a copy with it changes this repository.
        yield from (Path(folder, name) for name in files if name != ".git" and not name.endswith(LEFTOVERS))


def text_files(under: str = "") -> Iterator[tuple[str, str]]:
    for path in repository_files(under):
        content = path.read_bytes()
        if b"\0" not in content:
            yield str(path.relative_to(ROOT)), content.decode(errors="replace")


def python_files(*under: str) -> Iterator[tuple[str, str]]:
    for folder in under or CODE_FOLDERS:
        yield from ((name, text) for name, text in text_files(folder) if name.endswith(".py"))


def lines_that_match(*patterns: re.Pattern[str]) -> list[str]:
    """No pattern spans lines, so only a file that matches is read line by line."""
    return [
        f"{name}:{number}: {line.strip()}"
        for name, text in text_files()
        for pattern in patterns
        if pattern.search(text)
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
    # A clone in "/app" would find every mention of an app.
    here = [re.compile(re.escape(str(ROOT)))] if len(ROOT.parts) > 2 else []
    assert lines_that_match(MACHINE_PATH, *here) == []


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
    assert pins("development").items() >= (pins("runtime") | pins("extensions") | pins("build")).items()


def test_the_package_asks_for_what_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = (ROOT / "requirements" / "runtime.in").read_text().splitlines()
    assert wanted(project["project"]["dependencies"]) == wanted(runtime)
    assert wanted(project["build-system"]["requires"]) <= pins("build").keys()


def test_every_source_file_says_what_it_is() -> None:
    assert [name for name, text in python_files() if text.strip() and not DOCSTRING.match(text)] == []


def test_the_changelog_has_one_unreleased_section_and_then_no_later_version() -> None:
    versions = re.findall(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == "Unreleased"
    assert [Version(last) for last in versions[1:2]] <= [Version(postroad.__version__)]


def test_modules_are_named_as_things_or_by_the_plain_verb() -> None:
    names = {Path(name).stem for name, _ in python_files() if not Path(name).stem.startswith("test_")}
    assert {name for name in names if name.endswith("ing")} - ACTIVITIES == set()


def test_limits_are_called_max_or_min() -> None:
    other = re.compile(r"^(?:MOST|MAXIMUM|LONGEST|FEWEST|LEAST|MINIMUM)_[A-Z_]+(?::| =)", re.MULTILINE)
    assert [name for name, text in python_files("src") if other.search(text)] == []


def test_every_link_inside_the_documentation_leads_somewhere() -> None:
    broken = [
        f"{name}: {link}"
        for name, text in text_files()
        if name.endswith(".md")
        for link in LINK.findall(text)
        if not (ROOT / name).parent.joinpath(link).exists()
    ]
    assert broken == []


def test_the_source_names_only_files_that_exist() -> None:
    existing = "".join(f"/{path.relative_to(ROOT)}\n" for path in repository_files() if path.suffix == ".py")
    missing = {
        f"{name}: {file}"
        for name, text in python_files("src", "extensions")
        for file in SOURCE_FILE.findall(text)
        if f"/{file}\n" not in existing and file not in FOREIGN_FILES
    }
    assert missing == set()


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
