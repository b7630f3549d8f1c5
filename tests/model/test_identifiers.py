"""Ids: a prefix that says what they name, and digits that sort by time."""

import itertools
import re
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad import errors
from postroad.model.units import identifiers

ENTROPY = bytes(range(7))
# The last microsecond that fourteen hex digits can count, in the year 4253.
LAST = 16**14 - 1

PREFIXES = {
    "MESSAGE": "em_",
    "RECIPIENT": "rcp_",
    "REQUEST": "req_",
    "ACCOUNT": "acc_",
    "CREDENTIAL": "cred_",
    "API_KEY": "key_",
    "DOMAIN": "dom_",
    "TEMPLATE": "tpl_",
    "USER": "usr_",
    "LEDGER": "led_",
    "EVENT": "evt_",
    "WEBHOOK": "whk_",
    "WEBHOOK_DELIVERY": "whd_",
    "AUDIT_ENTRY": "aud_",
    "TOKEN": "tok_",
}


@pytest.mark.parametrize("prefix", PREFIXES.values())
def test_the_published_shape_is_that_of_an_id(prefix: str) -> None:
    shape = re.compile(identifiers.pattern(prefix))
    assert shape.search(identifiers.make(prefix, now=LAST, entropy=ENTROPY))
    for other in ("x_" + "0" * 28, prefix, prefix + "0" * 27, prefix + "0" * 29, prefix + "G" * 28):
        assert not shape.search(other)


@pytest.mark.parametrize("kind", PREFIXES)
def test_each_kind_has_its_documented_prefix(kind: str) -> None:
    assert getattr(identifiers, kind) == PREFIXES[kind]


def test_no_two_kinds_share_a_prefix() -> None:
    prefixes = [value for name, value in vars(identifiers).items() if name.isupper() and str(value).endswith("_")]
    assert len(prefixes) >= len(PREFIXES)
    assert not any(one.startswith(other) for one, other in itertools.permutations(prefixes, 2))


def test_an_id_is_its_prefix_then_time_then_chance() -> None:
    assert identifiers.make("em_", now=0x1234, entropy=ENTROPY) == "em_0000000000123400010203040506"


@given(st.integers(0, LAST), st.binary(min_size=7, max_size=7))
def test_a_made_id_is_recognised_and_safe_in_a_url(now: int, entropy: bytes) -> None:
    made = identifiers.make("em_", now=now, entropy=entropy)
    assert identifiers.is_identifier(made, "em_")
    assert made.isascii()
    assert made.replace("_", "").isalnum()


@given(st.tuples(st.integers(0, LAST), st.binary(min_size=7, max_size=7)), st.integers(0, LAST))
def test_ids_sort_by_time(one: tuple[int, bytes], other: int) -> None:
    first = identifiers.make("em_", now=one[0], entropy=one[1])
    second = identifiers.make("em_", now=other, entropy=ENTROPY)
    if one[0] != other:
        assert (first < second) == (one[0] < other)


GOOD = "em_" + 28 * "a"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "em_",
        GOOD[:-1],
        GOOD + "a",
        GOOD + "\n",
        " " + GOOD,
        GOOD.upper(),
        "EM_" + 28 * "a",
        "em_" + 28 * "g",
        "em_" + 27 * "a" + "\0",
        "em_" + 28 * "٣",
        "em_" + 28 * "ａ",
        "rcp_" + 28 * "a",
        "em_x_" + 28 * "a",
        "em_" + 10_000 * "a",
        "../em_" + 28 * "a",
    ],
)
def test_everything_else_is_not_an_id(text: str) -> None:
    assert identifiers.is_identifier(GOOD, "em_")
    assert not identifiers.is_identifier(text, "em_")


# A cursor is an id or the beginning of a time; whatever else a caller sends is refused.


ZEROS = bytes(7)


def made_at(microseconds: int, entropy: bytes = ZEROS) -> str:
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
