"""What logs say against the processes that wrote them."""

import json
from pathlib import Path

import pytest

from tests.chaos import snapshot

STARTED = {"level": "info", "event": "started"}
FAULT = {"level": "error", "event": "delivery_failed"}
LOST = {"level": "error", "event": "frontend_lost"}
ENDED = {"level": "error", "event": "role_ended"}
LAST_WORDS = "Error: the role frontends failed and the service has stopped; see the log"


@pytest.mark.parametrize(
    "lines, faults",
    [
        ([STARTED], []),
        ([STARTED, FAULT], ["delivery_failed"]),
        ([STARTED, "Traceback", "and more of it"], ["Traceback"]),
        ([STARTED, LOST, ENDED, LAST_WORDS], []),
        ([STARTED, FAULT, LOST, ENDED, LAST_WORDS], ["delivery_failed"]),
        ([STARTED, "Traceback", LOST, ENDED, LAST_WORDS], ["Traceback"]),
        ([STARTED, ENDED, LAST_WORDS], ["role_ended", "the role frontends failed"]),
    ],
)
def test_a_lost_frontend_excuses_what_follows_from_it_and_nothing_else(
    tmp_path: Path, lines: list[dict[str, str] | str], faults: list[str]
) -> None:
    log = tmp_path / "0001.log"
    log.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    found = snapshot.errors_of(log)
    assert len(found) == len(faults)
    assert all(fault in text for fault, text in zip(faults, found, strict=True))
