"""`make` and the Python that it is told to use. The Pythons of these tests are scripts, and install nothing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import test_repository

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
# It answers what the Makefile asks, and makes an environment with itself and a service in it.
PYTHON = """\
#!/bin/sh
case "$*" in
    *version_info\\[:2\\]*) echo 3.{minor} ;;
    -V) echo Python 3.{minor}.1 ;;
    "-m venv --clear .venv")
        rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python
        echo "version = 3.{minor}.1" >.venv/pyvenv.cfg
        printf '#!/bin/sh\\necho started on 3.{minor}\\n' >.venv/bin/postroad && chmod +x .venv/bin/postroad ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    packages = (".", "extensions/mcp", "extensions/postmark", "extensions/resend")
    locks = ("requirements/runtime.txt", "requirements/extensions.txt", "requirements/build.txt")
    for name in (*(f"{package}/pyproject.toml" for package in packages), *locks):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(test_repository.ROOT / "Makefile", tmp_path)
    (tmp_path / "bin").mkdir()
    for name, minor in {"python3": 11, "python3.11": 11, "python3.14": 14}.items():
        (tmp_path / "bin" / name).write_text(PYTHON.format(minor=minor))
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def attempt(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTHON"))
    }
    environment["PATH"] = f"{clone / 'bin'}:{environment['PATH']}"
    command = ["make", "run", *words]
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def run(clone: Path, *words: str) -> list[str]:
    done = attempt(clone, *words)
    done.check_returncode()
    return done.stdout.splitlines()


def test_an_environment_has_the_python_that_was_named_last(clone: Path) -> None:
    made, installed = "Making .venv with Python 3.{}.1", "Installing what the service needs"
    assert run(clone) == [made.format(11), installed, "started on 3.11"]
    assert run(clone, "PYTHON=python3.11") == ["started on 3.11"]
    assert run(clone, "PYTHON=python3.14") == [made.format(14), installed, "started on 3.14"]
    assert run(clone, "PYTHON=python3.14") == ["started on 3.14"]
    assert run(clone) == ["started on 3.14"]


def test_an_environment_whose_python_was_replaced_is_made_anew(clone: Path) -> None:
    run(clone)
    for python in (".venv/bin/python", "bin/python3"):
        (clone / python).write_text(PYTHON.format(minor=12))
    assert run(clone)[-1] == "started on 3.12"


def test_a_python_that_does_not_run_is_named_in_one_sentence(clone: Path) -> None:
    shim = clone / "bin" / "python3.12"
    shim.write_text('#!/bin/sh\necho "pyenv: python3.12: command not found" >&2\nexit 127\n')
    shim.chmod(0o755)
    for python in ("python3.12", "python3.99"):
        done = attempt(clone, f"PYTHON={python}")
        assert done.returncode == 2
        assert done.stderr.splitlines()[0] == (
            f"Postroad needs Python 3.11 or newer; '{python}' was not found, or does not run. "
            "Try: make PYTHON=/path/to/python3.11"
        )
        assert "pyenv" not in done.stderr + done.stdout
