"""What may stand in a header: the checks, and the patterns that publish them."""

import re
import sys

import hypothesis
import jsonschema_rs
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import header_fields

STDLIB_VALUE = jsonschema_rs.validator_for({"pattern": header_fields.VALUE_PATTERN})
STDLIB_NAME = jsonschema_rs.validator_for({"pattern": header_fields.NAME_PATTERN})


@pytest.mark.parametrize(
    "text", ["", "Hello", "a\tb", "Größe 😀", "a =? b ?= c", "50 % = ?", "=?x?=", "א\u200fב", "a\u00a0b"]
)
def test_ordinary_text_passes(text: str) -> None:
    header_fields.check_value(text)


@pytest.mark.parametrize("text", ["=?utf-8?q?x?=", "a =?utf-8?B?eA==?= b", "=?x?q?", "=??b?", "=?a b?Q?", "x=?u?q?y"])
def test_what_begins_an_encoded_word_is_refused(text: str) -> None:
    with pytest.raises(header_fields.HeaderError, match="encoded words"):
        header_fields.check_value(text)


def test_every_character_that_splits_a_line_somewhere_is_refused_as_a_line_break() -> None:
    splitting = [chr(code) for code in range(sys.maxunicode + 1) if len(f"a{chr(code)}b".splitlines()) > 1]
    assert len(splitting) == 10
    for character in splitting:
        with pytest.raises(header_fields.HeaderError, match="line breaks are not allowed here"):
            header_fields.check_value(f"a{character}b")


@pytest.mark.parametrize("code", [0, 0x01, 0x08, 0x1B, 0x1F, 0x7F, 0x80, 0x9F, 0xD800, 0xDFFF])
def test_other_control_characters_are_refused(code: int) -> None:
    with pytest.raises(header_fields.HeaderError, match=f"control characters.*U\\+{code:04X}"):
        header_fields.check_value(f"a{chr(code)}b")


@pytest.mark.parametrize("character", ["\t", "\u202a", "\u202e", "\u2066", "\u2069"])
def test_a_display_name_or_a_file_name_is_checked_more_strictly(character: str) -> None:
    header_fields.check_value(f"a{character}b")
    with pytest.raises(header_fields.HeaderError):
        header_fields.check_label(f"a{character}b")


@pytest.mark.parametrize("name", ["X-A", "List-Unsubscribe", "a", "X_1.2", "X" * 76])
def test_a_header_name_is_a_token(name: str) -> None:
    header_fields.check_name(name)


@pytest.mark.parametrize("name", ["", "X A", "X:", "X\r\n", "X\n", "é", "X" * 77, "X\0", '"X"', "X(y)", "X/Y"])
def test_what_is_no_token_is_no_header_name(name: str) -> None:
    with pytest.raises(header_fields.HeaderError):
        header_fields.check_name(name)


@hypothesis.given(st.text() | st.text("a =?qB\r\n\t\0\u2028"))
def test_the_value_pattern_says_the_same_as_the_check(text: str) -> None:
    hypothesis.assume(not re.search("[\ud800-\udfff]", text))
    try:
        header_fields.check_value(text)
        accepted = True
    except header_fields.HeaderError:
        accepted = False
    assert STDLIB_VALUE.is_valid(text) == accepted
    assert (re.search(header_fields.VALUE_PATTERN[:-1] + r"\Z", text) is not None) == accepted


@hypothesis.given(st.text("aZ09-_.: \n()é!#$%&'*+^`|~/", max_size=80))
def test_the_name_pattern_says_the_same_as_the_check(name: str) -> None:
    try:
        header_fields.check_name(name)
        accepted = True
    except header_fields.HeaderError:
        accepted = False
    assert STDLIB_NAME.is_valid(name) == accepted
