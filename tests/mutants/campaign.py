"""Tests against one mutant at a time: which tests, in which process, for how long.

A mutant is never a file: a forked process imports its source under the name of the module, and runs the tests that
cover the module. So the working tree stays as it is, and what takes long to import is imported once. Tests on
PostgreSQL are left out, because the same tests run on SQLite.
"""

import ast
import contextlib
import importlib.machinery
import importlib.util
import math
import os
import resource
import signal
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parents[2] / "src" / "postroad"
TESTS: Final = Path(__file__).parents[1]
# Tests may use so many times as much of the processor with a mutant as without, and this much on top: a busy machine
# kills no mutant. One that waits for ever instead is ended by the clock.
SLOWER: Final = 3.0
GRACE_SECONDS: Final = 10.0
HANG_SECONDS: Final = 300
# This package is imported before pytest could rewrite it; and a module named `…_test.py` is no test that it may read.
OPTIONS: Final = (
    *"-x -q -p no:cacheprovider -p no:xdist -W ignore::pytest.PytestAssertRewriteWarning".split(),
    *("-o", "python_files=test_*.py"),
)


class Substitute(importlib.machinery.SourceFileLoader):
    """Imports one module from a source in memory."""

    def __init__(self, module: Path, source: str) -> None:
        super().__init__(_name(module), str(module))
        self._source = source

    def find_spec(self, name: str, *_others: object) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> types.CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


class _NoShrinking:
    """The first counterexample of hypothesis will do; to make it small takes long."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        import hypothesis  # noqa: PLC0415 - a plugin of pytest, which imports those itself

        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutants", hypothesis.settings.get_profile("postroad"), phases=phases)
        hypothesis.settings.load_profile("mutants")


class Module:
    """A module, its tests, and how long they may take."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stages = stages(path)
        self._limits: dict[int, int] = {}

    def notices(self, source: str) -> bool:
        """Whether a test fails with this source, or does not end."""
        return any(self._fails(stage, source) for stage in range(len(self._stages)))

    def _fails(self, stage: int, source: str) -> bool:
        if stage not in self._limits:
            code, used = run(self._path, self._path.read_text(), self._stages[stage])
            if code != 0:
                raise SystemExit(f"Without a mutant the tests of {self._path} fail already")
            self._limits[stage] = math.ceil(SLOWER * used + GRACE_SECONDS)
        return run(self._path, source, self._stages[stage], limit=self._limits[stage])[0] != 0


def stages(module: Path) -> list[list[Path]]:
    """The tests of a module: its own, then those of its folder and those of its package that import it.

    A module without tests of its own in its package has those that import it, wherever they are.
    """
    inside = module.relative_to(SOURCE)
    # Tests of a package may stand in fewer folders than its modules.
    folder = next(folder for folder in (TESTS / inside.parent, *(TESTS / inside.parent).parents) if folder.is_dir())
    own = sorted(folder.glob(f"test_{module.stem}*.py")) if folder != TESTS else []
    users = [file for file in sorted(TESTS.glob("*/**/test_*.py")) if _imports(file, module)]
    near = [file for file in users if file.relative_to(TESTS).parts[0] == inside.parts[0]]
    others = sorted({*(folder.glob("test_*.py") if folder != TESTS else ()), *near} - {*own})
    return [stage for stage in (own, others) if stage] if own or near else [users or others]


def _name(module: Path) -> str:
    return ".".join(("postroad", *module.relative_to(SOURCE).with_suffix("").parts))


def _imports(file: Path, module: Path) -> bool:
    """Whether a file imports a module. A file that does not contain its name is not parsed."""
    text = file.read_text()
    package, _, name = _name(module).rpartition(".")
    if name not in text or f"from {package}" not in text:
        return False
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    return any(
        _name(module) in (f"{node.module}", f"{node.module}.{each.name}") for node in nodes for each in node.names
    )


def run(module: Path, source: str, tests: Sequence[Path], *, limit: int = HANG_SECONDS) -> tuple[int, float]:
    """The exit code of pytest with this source, in a process of its own, and the seconds of the processor it used."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        signal.alarm(HANG_SECONDS)
        silence = os.open(os.devnull, os.O_RDWR)
        for output in (0, 1, 2):
            os.dup2(silence, output)
        sys.meta_path.insert(0, Substitute(module, source))
        os._exit(pytest.main([*OPTIONS, "-k", "not postgres", *map(str, tests)], plugins=[_NoShrinking()]))
    try:
        _, status, usage = os.wait4(child, 0)
    finally:
        # Whatever the tests started is in the session of the child.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
