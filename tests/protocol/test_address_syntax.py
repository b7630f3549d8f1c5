"""The published pattern of an address: what it matches is accepted, and what is accepted it matches."""

import re

import hypothesis
import idna
import jsonschema_rs
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import address

# Python's `$` also matches before a last line feed; that of JSON Schema, being ECMA's, does not.
PATTERN = re.compile(address.ADDRESS_SYNTAX_SCHEMA_PATTERN[:-1] + r"\Z")
DOMAIN_PATTERN = re.compile(address.DOMAIN_SCHEMA_PATTERN[:-1] + r"\Z")
WIDE_RANGES = re.findall(r"\\u(\w{4})-\\u(\w{4})", address._LETTERS)
WIDE_LETTERS = [chr(code) for first, last in WIDE_RANGES for code in range(int(first, 16), int(last, 16) + 1)]


@hypothesis.given(st.from_regex(PATTERN))
def test_what_the_pattern_matches_is_accepted(text: str) -> None:
    hypothesis.assume(len(text) <= 1000)
    address.parse(text)


@hypothesis.given(st.from_regex(DOMAIN_PATTERN))
def test_what_the_domain_pattern_matches_is_accepted(text: str) -> None:
    hypothesis.assume(len(text) <= 1000)
    assert address.parse_domain(text).isascii()


@hypothesis.given(st.text('aZ09.@<>"\\,;:()[] -+_=?ü\r\n\0\u2028\u202e', max_size=24))
def test_both_agree_about_any_text_of_the_usual_signs(text: str) -> None:
    try:
        accepted = address.parse(text) is not None
    except address.AddressError:
        accepted = False
    assert (PATTERN.search(text) is not None) == accepted


@pytest.mark.parametrize(
    "text",
    [
        "user@example.com",
        "a" * 64 + "@example.com",
        "a@" + "b" * 63 + ".example",
        "a@" + "bcdefgh." * 31 + "exam",
        "x <" + "a@" + "bcdefgh." * 31 + "exam>",
        "n" * 255 + " <a@example.com>",
        '"' + r"\"" * 255 + '" <a@example.com>',
        " John Q. Public <user@example.com> ",
        '"Quoted, \\"Name\\" <x>" <user@example.com>',
        "Jörg 山田 😀 <jörg@bücher.example>",
        "用户@例子.广告",
        "имя@пример.рф",
        "a@a--b.example",
    ],
)
def test_what_is_accepted_matches(text: str) -> None:
    address.parse(text)
    assert PATTERN.search(text)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 65 + "@example.com",
        "a@" + "b" * 64 + ".example",
        "a@" + "bcdefgh." * 31 + "examp",
        "x <" + "a@" + "bcdefgh." * 31 + "examp>",
        "n" * 256 + " <a@example.com>",
        '"' + "n" * 256 + '" <a@example.com>',
        "a@xn--zzzzzz.example",
        "a@example.1",
        "a@localhost",
        "a=?b@example.com",
        "user@example.com\n",
        "a.@example.com",
        "Last, First <a@example.com>",
    ],
)
def test_what_is_refused_does_not_match(text: str) -> None:
    with pytest.raises(address.AddressError):
        address.parse(text)
    assert not PATTERN.search(text)


def test_every_letter_of_other_scripts_in_the_pattern_is_accepted_on_both_sides() -> None:
    assert len(WIDE_LETTERS) > 30_000
    for start in range(0, len(WIDE_LETTERS), 14):
        letters = "".join(WIDE_LETTERS[start : start + 14])
        mailbox = address.parse(f"{letters}@{letters}.example")
        assert mailbox.local == letters
        assert idna.decode(mailbox.domain) == f"{letters}.example"


def test_the_longest_labels_of_the_pattern_fit_their_punycode() -> None:
    last = len(WIDE_LETTERS) - 1
    spread = [WIDE_LETTERS[index * last // 13] for index in range(14)]
    for letters in (spread, spread[::-1], spread[::2] + spread[1::2], [WIDE_LETTERS[0], WIDE_LETTERS[last]] * 7):
        among_others = "z" * 12 + "zzzz".join(letters[:4]) + "z" * 12
        text = f"{'漢' * 21}@{among_others}.{''.join(letters)}.{among_others}"
        assert PATTERN.search(text)
        address.parse(text)


def test_the_patterns_are_portable() -> None:
    for pattern in (address.ADDRESS_SYNTAX_SCHEMA_PATTERN, address.DOMAIN_SCHEMA_PATTERN):
        assert pattern.startswith("^")
        assert pattern.endswith("$")
        outside_classes = re.sub(r"\[(?:\\.|[^\]\\])*\]", "x", pattern)
        assert not re.search(r"\(\?(?![:!])|[+*?}]\+|\\[AZzpPhd]", outside_classes), "not every dialect has that"
        validator = jsonschema_rs.validator_for({"type": "string", "pattern": pattern})
        assert validator.is_valid("user@example.com") or validator.is_valid("example.com")
        assert not validator.is_valid("user@example.com\n")
        assert not validator.is_valid("user@localhost")
