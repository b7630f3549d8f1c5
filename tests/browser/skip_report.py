"""What a run had to leave out, said in red at its very end, so that nobody takes it for a whole one.

`tests/conftest.py` imports the hook: with parallel workers it is the process above them that speaks, and that one never
looks into this folder.
"""

from collections import Counter
from collections.abc import Generator, Iterable
from typing import Final, NoReturn

import pytest

MARK: Final = "LEFT OUT: "


def skip(what: str, *, because: str, remedy: str) -> NoReturn:
    """Skip this test, and have it counted at the end of the run."""
    pytest.skip(f"{MARK}{what}, because {because}; {remedy}")


def sentences(reasons: Iterable[str]) -> list[str]:
    """A line for each reason, with how many tests it cost."""
    counted = Counter(reason[reason.index(MARK) + len(MARK) :] for reason in reasons if MARK in reason)
    return [
        f"{MARK}{what} ({count}), because {rest}"
        for (what, rest), count in (
            (tuple(text.split(", because ", maxsplit=1)), count) for text, count in counted.items()
        )
    ]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None, None, None]:
    """After everything else, just above the closing line."""
    yield
    skipped = (report.longrepr for report in terminalreporter.stats.get("skipped", []))
    lines = sentences(str(place[2]) for place in skipped if isinstance(place, tuple))
    if lines:
        terminalreporter.section("This run is not whole", sep="!", red=True, bold=True)
        for line in lines:
            terminalreporter.line(line, red=True, bold=True)
