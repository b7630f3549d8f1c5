"""A cursor is an id or the beginning of a time; whatever else a caller sends is refused."""

from types import SimpleNamespace

import pytest

from postroad import errors
from postroad.model.units import identifiers

ENTROPY = bytes(7)


def made_at(microseconds: int, entropy: bytes = ENTROPY) -> str:
    return identifiers.make(identifiers.MESSAGE, now=microseconds, entropy=entropy)


def test_a_time_stands_before_everything_made_then_or_later_and_behind_everything_made_before() -> None:
    place = identifiers.at(identifiers.MESSAGE, 5)
    assert made_at(4, b"\xff" * 7) < place < made_at(5) < made_at(6)


def test_a_cursor_has_its_time() -> None:
    assert (
        identifiers.time_of(made_at(1_800_000_000_000_123, b"\xff" * 7), identifiers.MESSAGE) == 1_800_000_000_000_123
    )
    assert identifiers.time_of(identifiers.at(identifiers.MESSAGE, 5), identifiers.MESSAGE) == 5


def test_the_end_stands_behind_everything() -> None:
    assert made_at(16**14 - 1, b"\xff" * 7) < identifiers.end(identifiers.MESSAGE)


def test_a_time_beyond_all_ids_is_still_a_place() -> None:
    assert made_at(4) < identifiers.at(identifiers.MESSAGE, 2**70) < identifiers.end(identifiers.MESSAGE)


def test_there_is_a_following_part_exactly_when_more_was_found() -> None:
    assert identifiers.next_cursor([], limit=2) is None
    assert identifiers.next_cursor(["a", "b"], limit=2) is None
    assert identifiers.next_cursor(["a", "b", "c"], limit=2) == "b"


def test_a_page_has_at_most_its_limit_of_rows_and_the_position_of_the_last() -> None:
    rows = [SimpleNamespace(id="a", alias="x"), SimpleNamespace(id="b", alias="y"), SimpleNamespace(id="c", alias="z")]
    assert identifiers.page(rows, limit=2) == (rows[:2], "b")
    assert identifiers.page(rows, limit=2, key="alias") == (rows[:2], "y")
    assert identifiers.page(rows, limit=3) == (rows, None)


def test_an_id_is_a_cursor() -> None:
    assert identifiers.check("cursor", made_at(4), identifiers.MESSAGE) == made_at(4)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "em_",
        "%",
        "em_" + "0" * 27,
        "em_" + "0" * 29,
        "em_" + "G" * 28,
        "em_" + "0" * 28 + "\n",
        "em_" + "0" * 27 + "\0",
        "led_" + "0" * 28,
        "' OR 1=1 --",
    ],
)
def test_anything_else_is_refused_naming_the_field(text: str) -> None:
    with pytest.raises(errors.InvalidRequest, match=r"^before: "):
        identifiers.check("before", text, identifiers.MESSAGE)


def test_a_list_without_a_cursor_begins_at_its_beginning() -> None:
    assert identifiers.after(None, identifiers.MESSAGE) < made_at(0)
    assert identifiers.after(made_at(4), identifiers.MESSAGE) == made_at(4)
    with pytest.raises(errors.InvalidRequest, match=r"^cursor: "):
        identifiers.after("", identifiers.MESSAGE)
