"""The check that every test closes what it opens, tried on tests that do not, in one run of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests import open_resources

ROOT: Final = Path(__file__).parent.parent
LISTENER: Final = "socket.create_server(('127.0.0.1', 0))"
LEAKS: Final = {
    "listener": f"kept.append({LISTENER})",
    "listener_in_a_cycle": f"cycle = [{LISTENER}]; cycle.append(cycle)",  # only the collector can find it
    "process": "kept.append(subprocess.Popen(['sleep', '0.1']))",
    "pipe": "kept.append(subprocess.Popen(['true'], stdout=-1)); kept[-1].wait()",
}
CLEAN: Final = {
    "closed": f"{LISTENER}.close()",
    "shared": "request.getfixturevalue('shared')",
    "ended": "subprocess.run(['true'], capture_output=True)",
}
PROLOGUE: Final = f"""
import gc, socket, subprocess, pytest
kept = []

@pytest.fixture(scope="module")
def shared():
    with {LISTENER} as made:
        yield made
"""


def pytest_configure(config: pytest.Config) -> None:
    """This file is the plugin of that run."""
    open_resources.install()
    config.pluginmanager.register(open_resources)


def test_what_is_left_open_fails_the_test_that_opened_it_and_no_other(tmp_path: Path) -> None:
    file = tmp_path / "test_tried.py"
    bodies = (LEAKS | CLEAN).items()
    tests = [
        f"def test_{name}(request):\n    {body}\n\ndef test_after_{name}():\n    gc.collect()\n"
        for name, body in bodies
    ]
    file.write_text("\n".join([PROLOGUE, *tests]))
    plugins = ["-p", "no:cacheprovider", "-p", "tests.test_open_resources"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "pytest", "-q", "-rfE", "-W", "error", *plugins, str(file)]
    printed = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout
    assert re.findall(r"^(\w+) \S+::test_(\w+)", printed, re.MULTILINE) == [("ERROR", name) for name in LEAKS], printed
    assert f"{2 * len(LEAKS | CLEAN)} passed, {len(LEAKS)} errors" in printed
