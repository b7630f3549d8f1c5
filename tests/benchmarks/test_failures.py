"""A peer that fails is named in the result, in words that say nothing of the machine, and stops no other."""

import subprocess

import pytest

from benchmarks import failures


def test_a_program_that_fails_is_named_without_its_paths() -> None:
    gaps: list[str] = []
    with failures.into(gaps, what="round 1 of haraka did not end"):
        subprocess.run(["false", "/mnt/store/message.eml"], check=True)
    assert gaps == ["round 1 of haraka did not end: false ended with 1"]


def test_what_is_wrong_with_us_is_loud() -> None:
    with pytest.raises(KeyError), failures.into([], what="round 1"):
        raise KeyError


def fail(*failures_of_messages: Exception) -> None:
    """As a task group does."""
    raise ExceptionGroup("unhandled errors in a TaskGroup", failures_of_messages)


def test_one_of_many_messages_that_fails_is_named() -> None:
    gaps: list[str] = []
    with failures.into(gaps, what="postfix did not end"):
        fail(RuntimeError("expected 250, got 451"), EOFError())
    assert gaps == ["postfix did not end: expected 250, got 451"]


def test_what_is_wrong_with_us_is_loud_among_others() -> None:
    with pytest.raises(ExceptionGroup), failures.into([], what="round 1"):
        fail(RuntimeError("expected 250, got 451"), KeyError())
