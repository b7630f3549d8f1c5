"""A peer that fails is named in the result, in words that say nothing of the machine, and stops no other."""

import subprocess

import pytest

from benchmarks import failures


def group(*problems: Exception) -> ExceptionGroup[Exception]:
    """What a task group raises."""
    return ExceptionGroup("unhandled errors in a TaskGroup", problems)


def fail(problem: Exception) -> None:
    raise problem


@pytest.mark.parametrize(
    "problem, words",
    [
        (subprocess.CalledProcessError(1, ["false", "/mnt/store/message.eml"]), "false ended with 1"),
        (group(RuntimeError("expected 250, got 451"), EOFError()), "expected 250, got 451"),
    ],
)
def test_what_fails_is_named_without_its_paths(problem: Exception, words: str) -> None:
    gaps: list[str] = []
    with failures.into(gaps, what="round 1 of haraka did not end"):
        fail(problem)
    assert gaps == [f"round 1 of haraka did not end: {words}"]


@pytest.mark.parametrize("problem", [KeyError(), group(RuntimeError("expected 250, got 451"), KeyError())])
def test_what_is_wrong_with_us_is_loud(problem: Exception) -> None:
    with pytest.raises(type(problem)), failures.into([], what="round 1"):
        raise problem
