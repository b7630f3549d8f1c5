"""JSON of a stranger: what is ambiguous, dangerous or not JSON is refused, everything else is read like everywhere."""

import json
import re
import sys

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.text import strict_json

NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@hypothesis.given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_what_others_write_is_read(value: object, ensure_ascii: bool, indent: int | None) -> None:  # noqa: FBT001
    assert strict_json.read(json.dumps(value, ensure_ascii=ensure_ascii, indent=indent).encode()) == value


@pytest.mark.parametrize(
    "raw, reason",
    [
        (b"", "the body is empty"),
        (b" \r\n\t", "the body is empty"),
        (b"\xef\xbb\xbf{}", "must not start with a byte order mark"),
        (b"\xff\xfe{\0}\0", "byte 0 is not"),
        (b'{"a": "\xff"}', "byte 7 is not"),
        (b'"\xed\xa0\x80"', "byte 1 is not"),
        (b'"\xc0\xaf"', "byte 1 is not"),
        (b"{", "line 1, column 2"),
        (b'{"a": 1\n "b"}', "Expecting ',' delimiter at line 2, column 2"),
        (b"{'a': 1}", "Expecting property name"),
        (b"{a: 1}", "Expecting property name"),
        (b"[1, ]", "this is not JSON"),
        (b'{"a": 1,}', "this is not JSON"),
        (b"[1] [2]", "Extra data at line 1, column 5"),
        (b"01", "Extra data"),
        (b"1.", "Extra data"),
        (b".5", "Expecting value"),
        (b"+1", "Expecting value"),
        (b"0x1", "Extra data"),
        (b"// x\n1", "Expecting value"),
        (b"True", "Expecting value"),
        (b'"a\nb"', "Invalid control character at line 1"),
        (b'"a\0b"', "Invalid control character"),
        (b'"\\x41"', "Invalid \\escape"),
        (b'"\\u12"', "escape"),
        (b'"\\u 123"', "escape"),
        (b'"abc', "Unterminated string"),
        (b"\x0b1", "Expecting value"),
        (b"1\0", "Extra data"),
        ("１".encode(), "Expecting value"),
        (b"1\xc2\xa0", "Extra data"),
        (b"NaN", "NaN is not a JSON number"),
        (b"[Infinity]", "Infinity is not a JSON number"),
        (b'{"a": -Infinity}', "-Infinity is not a JSON number"),
        (b"1e999", "too large"),
        (b"-1e999", "too large"),
        (b"18446744073709551616", "does not fit into 64 bits"),
        (b"-9223372036854775809", "does not fit into 64 bits"),
        (b"1" * 5000, "does not fit into 64 bits"),
        (b"-" + b"1" * 5000, "does not fit into 64 bits"),
        (b"0." + b"1" * 5000, "too large or too long"),
        (b'{"a": 1, "a": 1}', "the member 'a' occurs twice"),
        (b'{"a": 1, "\\u0061": 2}', "the member 'a' occurs twice"),
        (b'[{"x": {"a\\r\\n": 1, "b": 2, "a\\r\\n": 3}}]', r"the member 'a\r\n' occurs twice"),
        (b'{"": 1, "": 1}', "the member '' occurs twice"),
        (b'{"a": "x", "a": "y"}', "the member 'a' occurs twice"),
        (b'{"a" : "x", "a"\r\n\t: "y"}', "the member 'a' occurs twice"),
        (b'{"a": "at 10 : 30", "a": "y"}', "the member 'a' occurs twice"),
        (b'"\\ud800"', "an unpaired surrogate"),
        (b'"\\udc00\\ud800"', "an unpaired surrogate"),
        (b'"a\\ud83dz"', "an unpaired surrogate"),
        (b'{"\\udfff": 1}', "an unpaired surrogate"),
        (b'[[{"a": ["\\uDBFF"]}]]', "an unpaired surrogate"),
        (b'{"a": {"\\ud83d": {}}}', "an unpaired surrogate"),
    ],
)
def test_what_is_not_sound_json_is_refused_with_its_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(strict_json.JsonError) as caught:
        strict_json.read(raw)
    assert reason in str(caught.value)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize(
    "raw, value",
    [
        (b" 1 ", 1),
        (b'"\\ud83d\\ude00"', "😀"),
        ('"😀\u2028\x7f"'.encode(), "😀\u2028\x7f"),
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"1.7976931348623157e308", sys.float_info.max),
        (b"1e-999", 0.0),
        (b'{"a": 1, "A": 2, "a ": 3}', {"a": 1, "A": 2, "a ": 3}),
        (b'{"a": {"b": 1}, "b": {"b": 2}}', {"a": {"b": 1}, "b": {"b": 2}}),
        (b'"\\u0000"', "\0"),
    ],
)
def test_what_is_sound_is_read(raw: bytes, value: object) -> None:
    assert strict_json.read(raw) == value


@pytest.mark.parametrize(
    "raw, value",
    [
        (b'{"a": "x", "b":["y"], "c" : null}', {"a": "x", "b": ["y"], "c": None}),
        (b'{"a": "Total : 5", "b": "https://example.com"}', {"a": "Total : 5", "b": "https://example.com"}),
        (b'{"a"\n: "x :\\n:"}', {"a": "x :\n:"}),
        (b'{"a": "say \\"yes\\": no"}', None),
        (b'{"a": "x", "a" : "y"}', None),
        (b'{"a": 1}', None),
    ],
)
def test_colons_in_texts_do_not_keep_an_object_from_being_plain(raw: bytes, value: object) -> None:
    assert strict_json.read_plain(raw) == value


OPENINGS = [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]"), ('{"a":[', "]}")]


@pytest.mark.parametrize("opening, closing", OPENINGS)
def test_nesting_is_taken_64_levels_deep_and_no_deeper(opening: str, closing: str) -> None:
    levels = 64 // len(re.findall(r"[\[{]", opening))
    strict_json.read((opening * levels + "1" + closing * levels).encode())
    with pytest.raises(strict_json.JsonError, match="at most 64 levels"):
        strict_json.read(("[" + opening * levels + "1" + closing * levels + "]").encode())


@pytest.mark.parametrize("opening, closing", OPENINGS)
@pytest.mark.parametrize("depth", [65, 999, 1001, 30_000, 100_000])
def test_the_deepest_nesting_gets_a_clean_answer(opening: str, closing: str, depth: int) -> None:
    for raw in (opening * depth, opening * depth + "1" + closing * depth, '{"x": [], "y": ' + opening * depth):
        with pytest.raises(strict_json.JsonError):
            strict_json.read(raw.encode())


def test_brackets_in_strings_are_not_nesting() -> None:
    text = "[{" * 200_000
    assert strict_json.read(json.dumps({"html": text, "b": ["\\", '"[', text]}).encode()) == {
        "html": text,
        "b": ["\\", '"[', text],
    }


@pytest.mark.parametrize("element", ["[]", "{}", "1", '""', "[[]]", '{"a":1}', "[1]"])
def test_a_body_of_too_many_values_is_refused_before_it_is_built(element: str) -> None:
    few, many = ([element] * count for count in (30_000, 100_000 + 1))
    assert isinstance(strict_json.read(f"[{','.join(few)}]".encode()), list)
    with pytest.raises(strict_json.JsonError, match="at most 100000 values"):
        strict_json.read(f"[{','.join(many)}]".encode())


LONG = {
    "escaped quotes": b'"' + b'\\"' * 2_000_000,
    "escaped quotes in brackets": b"[" * 200 + b'"' + b'\\"' * 2_000_000,
    "commas and escaped quotes": b'"' + b"," * 200_000 + b'\\"' * 1_000_000,
    "closing brackets": b"]" * 3_000_000,
    "digits": b"1" * 5_000_000,
    "digits after the point": b"1." + b"1" * 5_000_000,
    "open strings": b"[" + b'"\\' * 2_000_000,
    "spaces": b" " * 3_000_000 + b"x",
    "quotes": b'"' * 3_000_001,
    "strings without a sign between": b'","' * 200_000 + b'""' * 2_000_000,
    "small objects": b"[" + b'{"a":1},' * 1_000_000,
}


@pytest.mark.parametrize("raw", LONG.values(), ids=LONG.keys())
def test_no_body_takes_longer_than_its_length_explains(raw: bytes) -> None:
    with pytest.raises(strict_json.JsonError):
        strict_json.read(raw)  # with anything quadratic in it, this test would not end


@hypothesis.given(st.binary(max_size=60) | st.text('{}[]":,\\ud8fa01e.-+ntrufls \n', max_size=40).map(str.encode))
def test_any_bytes_are_json_or_refused_and_the_standard_library_agrees(raw: bytes) -> None:
    try:
        value = strict_json.read(raw)
    except strict_json.JsonError as error:
        message = str(error)
    else:
        assert json.loads(raw) == value
        return
    assert message.isprintable()
    if "this is not JSON" in message:
        with pytest.raises(ValueError):
            json.loads(raw.decode())


SPACES = st.sampled_from(["", " ", "\n\t"])
FLAT_MEMBERS = st.tuples(
    SPACES,
    st.sampled_from(['"a"', '"b"', '"\\u0061"', '"a\\"b"', '"a/b"', '"a\\/b"', '"é"', '"\\ud800"']),
    SPACES,
    st.sampled_from(['"x"', '"a\\":"', '": "', "null", "1", "{}", '["x"]', '["\\":"]', '"\\ud800"', '{"a":"b"}']),
)


@hypothesis.given(st.lists(FLAT_MEMBERS, max_size=4))
def test_the_quick_way_for_plain_objects_takes_nothing_that_the_other_way_refuses_or_reads_differently(
    members: list[tuple[str, str, str, str]],
) -> None:
    raw = b"{%s}" % ",".join(f"{before}{name}{after}:{value}" for before, name, after, value in members).encode()
    plain = strict_json.read_plain(raw)
    if plain is not None:
        assert strict_json._read_any(raw) == plain
    nested = strict_json._read_nested(raw)
    if nested is not None:
        assert strict_json._read_any(raw) == nested


def test_a_plain_object_of_100_kilobytes_takes_the_quick_way(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"from": "a@example.com", "to": ["b@example.net"], "html": "<p>long</p>\n" * 8_000}
    monkeypatch.delattr(strict_json, "_read_any")
    assert strict_json.read(json.dumps(value).encode()) == value


def test_the_quick_way_has_no_room_for_more_values_than_are_allowed() -> None:
    densest = b'{"":["' + b'","' * (((256 * 1024) - 10) // 3) + b'"]}'
    assert len(densest) <= 256 * 1024
    (values,) = strict_json._PLAIN.decode(densest).values()
    assert values is not None
    assert len(values) + 1 <= 100_000


@pytest.mark.parametrize(
    "raw, is_quick",
    [
        (b'{"emails": [{"to": ["a"], "cc": null}, {"metadata": {"a": "1"}}], "all_or_nothing": true}', True),
        (b'{"a": {"b": "text with a \\": in it"}}', False),  # perhaps a second member
        (b'{"a": {"b": "1", "b": "2"}}', False),
        (b'{"a": {"b": 1}}', False),
        (b'{"a": [1.5]}', False),
        (b'{"a": {"b": "\\ud800"}}', False),
        (b"[" * 64 + b"]" * 64, True),
        (b"[" * 65 + b"]" * 65, False),
        (b"[" * 100_000, False),
    ],
)
def test_nested_objects_without_numbers_take_a_quick_way_too(raw: bytes, is_quick: bool) -> None:  # noqa: FBT001
    assert (strict_json._read_nested(raw) is not None) == is_quick
