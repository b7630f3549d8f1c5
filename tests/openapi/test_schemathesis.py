"""The service does what its own document says: every operation and every check of schemathesis, on a running service.

Requests are made from the document alone: its examples, each member at each of its bounds and just beyond, random ones
of the right and of the wrong form, and chains in which one answer feeds the next request.
"""

from pathlib import Path

import pytest

from tests.conformance import live_service
from tests.openapi import schemathesis_run
from tests.reliability import profile

ONE_BY_ONE = "examples,coverage,fuzzing"


def examples(count: int) -> tuple[str, str]:
    """The most random requests for an operation."""
    return "--max-examples", str(count * profile.SCALE)


def check(outcome: schemathesis_run.Outcome) -> None:
    """Nothing was found, nothing was left out, and good requests reached what they were made for."""
    assert outcome.code == 0, outcome.printed
    report = outcome.report
    assert {name: found for name, found in report["warnings"].items() if found} == {}
    assert report["stop_reason"] == "completed"
    assert report["test_cases"]["errored"] == 0


def check_operations(outcome: schemathesis_run.Outcome) -> None:
    """The same, and each operation was reached by a good request."""
    check(outcome)
    operations, rates = outcome.report["operations"], outcome.report["valid_rates"]
    assert operations["tested"] == operations["selected"] == len(rates)
    reached = {name: sum(rate["accepted"] for rate in phases.values()) for name, phases in rates.items()}
    assert [name for name, times in reached.items() if not times] == []


def test_sending_and_reading_are_as_documented(sqlite_service: live_service.Service, tmp_path: Path) -> None:
    # In `make test`, the next test has each member of a send at its bounds, and tests/conformance just beyond them.
    phases = ONE_BY_ONE if profile.IS_LONG else "examples,fuzzing"
    words = ("--include-tag", "Emails", "--phases", phases, *examples(2))
    check_operations(schemathesis_run.run(sqlite_service, tmp_path, *words))


def test_every_member_of_a_send_may_be_at_its_bounds(sqlite_service: live_service.Service, tmp_path: Path) -> None:
    words = ("--include-name", "POST /emails", "--phases", "coverage", "--mode", "positive")
    check_operations(schemathesis_run.run(sqlite_service, tmp_path, *words, members_alone=True))


def test_managing_is_as_documented(sqlite_service: live_service.Service, tmp_path: Path) -> None:
    words = ("--exclude-tag", "Emails", "--phases", ONE_BY_ONE, *examples(2))
    check_operations(schemathesis_run.run(sqlite_service, tmp_path, *words, is_sending=False))


@pytest.mark.parametrize(
    "words",
    [
        ("--include-tag", "Emails", "--include-tag", "Messages", *examples(5)),
        ("--exclude-tag", "Emails", *examples(25)),
    ],
    ids=["mail", "everything else"],
)
def test_what_one_request_makes_the_next_one_finds(
    sqlite_service: live_service.Service, tmp_path: Path, words: tuple[str, ...]
) -> None:
    check(schemathesis_run.run(sqlite_service, tmp_path, "--phases", "stateful", *words))


def test_the_other_engine_makes_no_difference(postgres_service: live_service.Service, tmp_path: Path) -> None:
    # Few requests, and the first that is good leaves nothing waiting for the others to have tried at once.
    words = ("--exclude-name", "POST /v1/messages/{id}/retry", "--phases", "fuzzing,stateful", *examples(3))
    check(schemathesis_run.run(postgres_service, tmp_path, *words))
