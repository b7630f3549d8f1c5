"""The generated parts of the documentation are what the code says."""

import pytest

from postroad.model.events import events
from postroad.model.people import callers
from tests.docs import generated


@pytest.mark.parametrize("name", generated.PARTS)
def test_a_page_is_what_the_generator_writes(name: str) -> None:
    assert (generated.ROOT / name).read_text() == generated.written(name), "run: make docs-tables"


def test_every_event_and_its_members_are_described() -> None:
    assert ": \n" not in generated.event_types() + generated.event_members()
    assert all(f"### `{kind}`" in generated.event_types() for kind in events.SUBSCRIBABLE)


def test_the_table_of_permissions_says_who_sees_content() -> None:
    (row,) = [line for line in generated.permissions().splitlines() if line.startswith("| See content")]
    assert row.split(" | ")[1:] == ["yes", "yes", "yes", "no", "yes", "no", "no |"]
    assert list(callers.ROLE_TEXTS) == list(callers.Role)
