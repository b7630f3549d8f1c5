"""What docs/notices.md says in its table and examples is what the code does."""

import re
from pathlib import Path

from postroad.mail import notice_kinds
from postroad.model.units import times
from postroad.services.operations.notices import sender
from tests.services.operations.notices import test_rendering

PAGE = (Path(__file__).parents[2] / "docs" / "notices.md").read_text()
EXAMPLE = re.compile(r"```text\n(Subject: .*?)```", re.DOTALL)
BASE_URL = "https://mail.example.org"
CHOICES = {notice_kinds.Choice.NOW: "at once", notice_kinds.Choice.DIGEST: "digest"}


def duration(microseconds: int) -> str:
    units = {times.DAY: "days", times.HOUR: "hours", 60 * times.SECOND: "minutes"}
    unit = next(one for one in units if microseconds > one or (not microseconds % one and one < times.DAY))
    number = microseconds // unit
    return f"{number} {units[unit]}" if number > 1 else f"{number} {units[unit].removesuffix('s')}"


def test_the_table_lists_the_kinds() -> None:
    lines = PAGE.split("\n| kind |", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    listed = [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]
    assert listed == [
        [
            name,
            kind.audience.value,
            "always" if kind.is_security else CHOICES[kind.choice],
            duration(kind.interval),
            kind.title,
        ]
        for name, kind in notice_kinds.KINDS.items()
    ]


def test_the_example_is_what_operators_get() -> None:
    footer = sender.Footer(f"{BASE_URL}/profile#mail", f"{BASE_URL}/notices/token")
    values = test_rendering.COMMON | test_rendering.VALUES[notice_kinds.CHECK_FAILED]
    link = BASE_URL + notice_kinds.KINDS[notice_kinds.CHECK_FAILED].path.format_map(values)
    rendered = sender.render(notice_kinds.CHECK_FAILED, values, link=link, footer=footer)
    assert EXAMPLE.findall(PAGE) == [f"Subject: {rendered.subject}\n\n{rendered.text}"]


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"Beyond {sender.MAX_PER_HOUR} notices of a kind to one person in an hour" in PAGE
    assert (
        f"An account can have {notice_kinds.KINDS[notice_kinds.INVITATION].max_per_day} of each mailed in a day" in PAGE
    )
    assert sender.MAX_OWNERS == 5
    assert "the first five who have joined" in PAGE
