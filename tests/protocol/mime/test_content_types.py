"""Types of files: given ones are checked, missing ones come from the extension."""

import re

import hypothesis
import jsonschema_rs
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import content_types

STDLIB = jsonschema_rs.validator_for({"pattern": content_types.SCHEMA_PATTERN})


@pytest.mark.parametrize(
    "text, words",
    [
        ("image/png", ["image/png"]),
        ("application/vnd.ms-excel", ["application/vnd.ms-excel"]),
        ("text/csv; charset=utf-8", ["text/csv", "charset=utf-8"]),
        ("Message/RFC822; a=b", ["Message/RFC822", "a=b"]),
        ('text/csv;charset="utf-8" ; a="x; y=\\"z\\""', ["text/csv", 'charset="utf-8"', 'a="x; y=\\"z\\""']),
    ],
)
def test_a_type_is_taken_with_its_parameters(text: str, words: list[str]) -> None:
    assert content_types.check(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "",
        "png",
        "image/",
        "/png",
        "image/png;",
        "image/png; a",
        "image/png; a=",
        "image/png; =b",
        "image /png",
        "image/png\r\nX: y",
        "image/png\n",
        'image/png; a="x',
        'image/png; a="\r\n"',
        "image/pñg",
        "a/b; c=d e",
        "a/" + "b" * 254,
        'a/b; c="=?utf-8?q?x?="',
        "text/plain, text/html",
        "a/b; c=\x00",
    ],
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(content_types.ContentTypeError, match="a content type"):
        content_types.check(text)


@pytest.mark.parametrize("text", ["multipart/mixed", "MULTIPART/x; boundary=a", "message/rfc8222", "Message/partial"])
def test_composite_types_are_refused_with_a_hint(text: str) -> None:
    with pytest.raises(content_types.ContentTypeError, match="use 'application/octet-stream'"):
        content_types.check(text)


@pytest.mark.parametrize(
    "filename, guessed",
    [
        ("a.png", "image/png"),
        ("A.PDF", "application/pdf"),
        ("a.tar.gz", "application/gzip"),
        ("a.csv", "text/csv"),
        ("mail.eml", "message/rfc822"),
        ("a", "application/octet-stream"),
        ("png", "application/octet-stream"),
        ("", "application/octet-stream"),
        (".png", "image/png"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.unknown", "application/octet-stream"),
    ],
)
def test_a_missing_type_is_derived_from_the_extension(filename: str, guessed: str) -> None:
    assert content_types.guess(filename) == guessed


@hypothesis.given(st.text())
def test_a_guess_is_always_a_type_that_may_be_given(filename: str) -> None:
    content_types.check(content_types.guess(filename))


def test_every_type_of_the_table_may_be_given() -> None:
    for extension, kind in content_types.TYPES.items():
        assert extension == extension.lower()
        assert content_types.check(content_types.guess(f"a.{extension}")) == [kind]


@hypothesis.given(
    st.from_regex(content_types.SCHEMA_PATTERN[:-1] + r"\Z")
    | st.text('am/;= "\\\n?', max_size=20)
    | st.text("multiparmesgMULTI/x", max_size=12)
    | st.text("x8 ;=", max_size=5).map("message/rfc822".__add__)
)
def test_the_pattern_says_the_same_as_the_check(text: str) -> None:
    hypothesis.assume(len(text) <= content_types.MAX_CHARACTERS)
    try:
        accepted = bool(content_types.check(text))
    except content_types.ContentTypeError:
        accepted = False
    assert STDLIB.is_valid(text) == accepted
    assert (re.search(content_types.SCHEMA_PATTERN[:-1] + r"\Z", text) is not None) == accepted
