"""Ids: a prefix that says what they name, and digits that sort by time."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
