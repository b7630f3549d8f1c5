"""docs/doctor.md explains every check, in the order of the table, and no other."""

import re
from pathlib import Path

from postroad.services.operations.checks import certificates, data, host, table
from postroad.services.operations.checks.findings import State

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "doctor.md").read_text()


def test_every_check_has_an_entry_and_no_other() -> None:
    assert re.findall(r"^## (\w+)$", PAGE, re.MULTILINE) == list(table.CHECKS)
    assert table.PAGE == "docs/doctor.md"


def test_every_state_is_explained() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(State)


def test_the_limits_are_those_of_the_checks() -> None:
    for sentence in (
        f"Each check has {table.CHECK_SECONDS:.0f} seconds",
        f"fewer than {certificates.WARNING_DAYS} days left is a warning, fewer than {certificates.ERROR_DAYS} an error",
        f"less than {data.WARNING_SHARE:.0%} is a warning".replace("%", " percent"),
        f"less than {data.ERROR_BYTES // data.MEBIBYTE} MiB an error",
        f"within {data.WARNING_DAYS:.0f} days is a warning, within {data.ERROR_DAYS:.0f} days an error",
        f"more than {host.WARNING_SECONDS:.0f} seconds is a warning, more than {host.ERROR_SECONDS:.0f} an error",
    ):
        assert sentence in PAGE
