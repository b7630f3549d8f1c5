"""Names and values are read as everybody else does, but for what is not percent-encoded UTF-8."""

from urllib import parse

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.text import http_values

TEXT = st.text(st.characters(codec="utf-8"))


def read(text: bytes) -> list[tuple[str, str]]:
    return http_values.read_form(text, limit=128)


@hypothesis.given(st.lists(st.tuples(TEXT, TEXT), max_size=20))
def test_what_browsers_write_is_read(pairs: list[tuple[str, str]]) -> None:
    assert read(parse.urlencode(pairs).encode()) == pairs


@hypothesis.given(st.text("a=&+%4e1fF;_ \t\0", max_size=40))
def test_what_is_read_is_what_the_standard_library_reads(text: str) -> None:
    try:
        pairs = read(text.encode())
    except http_values.FormError:
        assert "%" in text
        return
    assert pairs == parse.parse_qsl(text, keep_blank_values=True, errors="strict")


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("unit", ["%C3%A4", "a%41", "=", "%3D=", "%25", "+%2B", "%0D%0A", "%E2%82%AC"])
def test_a_long_value_is_read_however_its_pieces_fall(unit: str, before: int) -> None:
    count = 2 * (64 * 1024) // len(unit)
    ((name, value),) = read(f"n=%6E{'x' * before}{unit * count}".encode())
    assert (name, value) == ("n", "n" + "x" * before + parse.unquote_plus(unit) * count)


@pytest.mark.parametrize(
    "text",
    [
        b"%",
        b"a=%",
        b"a=%4",
        b"a=%zz",
        b"a=%%41",
        b"a=%=41",
        b"a=%3%44",
        b"a=%ff",
        b"a=%C3",
        b"a=%ED%A0%80",
        b"a=%\n",
        b"a=%\r%41\n",
        b"a=1\nb",
        "ä=1".encode(),
        b"a=" + b"%41" * (64 * 1024) + b"%4",
        b"a=" + b"x" * ((64 * 1024) - 1) + b"%",
    ],
)
def test_what_is_not_percent_encoded_is_refused(text: bytes) -> None:
    with pytest.raises(http_values.FormError):
        read(text)


def test_there_are_no_more_fields_than_may_be() -> None:
    assert len(http_values.read_form(b"a&b&c", limit=3)) == 3
    with pytest.raises(http_values.FormError):
        http_values.read_form(b"a&b&c", limit=2)
