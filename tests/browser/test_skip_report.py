"""A run that left tests out says so at its end; a browser is found by its name, or by that of whoever names one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser import chromium, skip_report

ROOT = Path(__file__).parent.parent.parent


def test_every_reason_is_reported_once_with_how_many_tests_it_cost() -> None:
    reasons = [
        f"Skipped: {skip_report.MARK}browser tests, because there is none; install one",
        f"Skipped: {skip_report.MARK}browser tests, because there is none; install one",
        "Skipped: curl is not installed",
    ]
    assert skip_report.sentences(reasons) == ["LEFT OUT: browser tests (2), because there is none; install one"]


def run(folder: Path, test: str) -> list[str]:
    """What a run of one test prints, with nothing of ours but the hook."""
    (folder / "test_one.py").write_text(test)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.browser.skip_report",
        "-p",
        "no:cacheprovider",
        str(folder),
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take seconds to come in
    printed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return printed.stdout.splitlines()


def test_a_run_says_what_it_left_out_just_above_its_last_line(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        "from tests.browser import skip_report\n\n\ndef test_one():\n"
        "    skip_report.skip('browser tests', because='no Chromium was found', remedy='install with: a word')\n",
    )
    *_, title, sentence, closing = printed
    assert "This run is not whole" in title
    assert sentence == "LEFT OUT: browser tests (1), because no Chromium was found; install with: a word"
    assert "1 skipped" in closing


def test_a_run_that_left_nothing_out_says_nothing(tmp_path: Path) -> None:
    printed = run(tmp_path, "def test_one(): pass\n")
    assert "1 passed" in printed[-1]
    assert "not whole" not in "\n".join(printed)


def test_a_browser_that_somebody_names_is_taken_and_no_other(tmp_path: Path) -> None:
    program = tmp_path / "my-browser"
    program.touch(mode=0o700)
    assert chromium.find({"POSTROAD_CHROMIUM": str(program)}) == str(program)
    assert chromium.find({"POSTROAD_CHROMIUM": str(tmp_path / "nowhere")}) is None


def test_without_a_name_the_usual_ones_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert chromium.find({}) is None
    (tmp_path / "google-chrome").touch(mode=0o700)
    assert chromium.find({}) == str(tmp_path / "google-chrome")
    (tmp_path / "chromium-headless-shell").touch(mode=0o700)
    assert chromium.find({}) == str(tmp_path / "chromium-headless-shell")
