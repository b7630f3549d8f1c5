"""The client for Python on the oldest Pythons that it supports: their grammar, and where they are installed, a run."""

import ast
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from clients.conformance import languages, scenario_player, scenarios
from clients.conformance.driver import Driver, Program
from tests.browser.skip_report import skip

FOLDER = languages.CLIENTS / "python"
FILES = sorted([*FOLDER.glob("src/**/*.py"), *FOLDER.glob("conformance/*.py")])
OLDEST = (3, 9)
# Steps that take their time say nothing about a version.
SLOW_STEPS = {"hang", "trickle", "delay", "endless", "ignore_connections"}


def interpreter(version: str) -> str | None:
    """A Python of this version, on the path or made by pyenv; a shim of pyenv may be there and not work."""
    found = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    for path in filter(None, found):
        command = [str(path), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if said == version:
            return str(path)
    return None


def is_quick(scenario: scenarios.Scenario) -> bool:
    requests = scenario.expect.get("requests", 0)
    return requests in (0, 1) and not SLOW_STEPS & {name for step in scenario.server for name in step}


def test_the_package_says_which_is_the_oldest() -> None:
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.9"
    assert "Programming Language :: Python :: 3.9" in project["classifiers"]
    assert "Python 3.9 or newer" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_is_written_in_the_grammar_of_the_oldest(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=OLDEST)
    # Without this, `str | None` in an annotation would be computed, and fail.
    has_annotations = any(isinstance(node, ast.AnnAssign | ast.FunctionDef) for node in ast.walk(tree))
    assert not has_annotations or "from __future__ import annotations\n" in path.read_text()


@pytest.mark.parametrize("version", ["3.9", "3.10"])
async def test_an_old_python_does_what_the_scenarios_expect(version: str, tmp_path: Path) -> None:
    python = interpreter(version)
    if python is None:
        skip(f"the Python client on {version}", because=f"Python {version} is not installed", remedy="install it")
    suite = scenarios.load()
    suite.write_files(tmp_path)
    program = Program([python, "-W", "error", "conformance/driver.py", "sync"], FOLDER, languages.environment())
    driver = Driver(program, errors=tmp_path / "stderr")
    player = scenario_player.Player(driver, agent="postroad-python", files=tmp_path)
    chosen = [scenario for scenario in suite.scenarios if is_quick(scenario)]
    assert len(chosen) > 100
    played = {scenario.name: await player.play(scenario) for scenario in chosen}
    played["vectors"] = await scenario_player.try_vectors(driver)
    played["events"] = await scenario_player.try_events(driver)
    assert await driver.close() is None
    assert {name: found for name, found in played.items() if found} == {}
