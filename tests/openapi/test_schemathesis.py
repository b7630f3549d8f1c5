"""The service does what its own document says: every operation, every check of schemathesis, on a running service."""

from pathlib import Path

from tests.conformance import running
from tests.openapi import checking


def test_emails(sqlite_service: running.Service, tmp_path: Path) -> None:
    outcome = checking.run(
        sqlite_service, tmp_path, "--include-tag", "Emails", "--phases", "examples,coverage,fuzzing", "-n", "20"
    )
    print(outcome.printed)
    print(outcome.report)
    assert outcome.code == 0, outcome.printed


def test_stateful(sqlite_service: running.Service, tmp_path: Path) -> None:
    outcome = checking.run(
        sqlite_service, tmp_path, "--phases", "stateful", "-n", "20"
    )
    print(outcome.printed)
    print(outcome.report)
    assert outcome.code == 0, outcome.printed
