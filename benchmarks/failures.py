"""A peer that fails must not take the figures of the others with it: its failure becomes a gap of the report."""

import contextlib
import pathlib
import subprocess
import sys
import typing


@contextlib.contextmanager
def into(gaps: list[str], *, what: str) -> typing.Iterator[None]:
    """Write a failure of the block down and go on after it; what is wrong with ourselves stays loud."""
    try:
        yield
    except subprocess.CalledProcessError as failure:
        # Its own words would name the folders of this machine.
        _add(gaps, f"{what}: {pathlib.Path(failure.cmd[0]).name} ended with {failure.returncode}")
    except (RuntimeError, TimeoutError) as failure:
        _add(gaps, f"{what}: {failure}")
    except ExceptionGroup as group:
        expected, others = group.split((RuntimeError, TimeoutError, EOFError, OSError))
        if expected is None or others is not None:
            raise
        _add(gaps, f"{what}: {expected.exceptions[0]}")


def _add(gaps: list[str], words: str) -> None:
    print(f"!!! {words}", file=sys.stderr)
    gaps.append(words)
