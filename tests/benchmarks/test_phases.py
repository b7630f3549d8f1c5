"""The phase of a stack, and the costliest functions of each."""

import collections
import pathlib

import pytest

import postroad
from benchmarks import phases, stacks

PACKAGE = pathlib.Path(postroad.__file__).parent


def _stack(*functions: str) -> stacks.Stack:
    """Functions of the package from the inside to the outside, and the event loop around them."""
    ours = [stacks.Function(f"{PACKAGE}/{path}", name) for path, name in (one.split(":") for one in functions)]
    return (
        *ours,
        stacks.Function("/lib/asyncio/runners.py", "run"),
        stacks.Function(f"{PACKAGE}/cli/serve.py", "serve"),
    )


@pytest.mark.parametrize(
    "functions, phase",
    [
        ((), phases.EVENT_LOOP),
        (
            ("protocol/mime/builder.py:build", "mail/accept/compose.py:compose", "mail/accept/submit.py:_submit"),
            "compose",
        ),
        (
            (
                "storage/engine/sqlite.py:execute_many",
                "mail/results/outcomes.py:record",
                "storage/engine/group_commit.py:_run",
            ),
            "record",
        ),
        (("storage/engine/sqlite.py:_begin", "storage/engine/group_commit.py:_run"), phases.TRANSACTIONS),
        (("services/operations/cleanup.py:sweep",), phases.OTHER),
    ],
)
def test_the_innermost_function_that_the_table_knows_decides(functions: tuple[str, ...], phase: str) -> None:
    assert phases.of_stack(_stack(*functions)) == phase


def test_every_line_of_the_table_names_something_that_exists() -> None:
    files = [str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")]
    for key, phase in phases.OF_FILE.items():
        path, _, function = key.partition(":")
        fitting = [file for file in files if file.startswith(path)]
        assert fitting, key
        assert not function or any(f"def {function}(" in (PACKAGE / file).read_text() for file in fitting), key
        assert phase in phases.PHASES


def test_functions_are_counted_alone_and_with_what_they_call_within_their_phase() -> None:
    inner = _stack(
        "protocol/mime/builder.py:build",
        "mail/accept/compose.py:compose",
        "mail/accept/submit.py:_submit",
    )
    outer = _stack("mail/accept/compose.py:compose", "mail/accept/submit.py:_submit")
    found = phases.functions(collections.Counter({inner: 3, outer: 1}), microseconds=2.0)["compose"]
    assert found.own == [("protocol/mime/builder.py:build", 6.0), ("mail/accept/compose.py:compose", 2.0)]
    assert found.inclusive == [("mail/accept/compose.py:compose", 8.0), ("protocol/mime/builder.py:build", 6.0)]
