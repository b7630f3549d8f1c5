"""Names of files: read back by the standard library, refused when they are more than a name."""

import re
import urllib.parse

import hypothesis
import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.mime import builder, file_names, header_fields
from tests.protocol import stdlib_parser

STDLIB = jsonschema_rs.validator_for({"pattern": file_names.SCHEMA_PATTERN})
CHARACTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="/\\\u2028\u2029")
NAMES = st.text(CHARACTERS, min_size=1, max_size=255) | st.text("ab .=?'\"%*;é漢", min_size=1, max_size=255)


def is_allowed(filename: str) -> bool:
    try:
        file_names.check(filename)
    except header_fields.HeaderError:
        return False
    return True


@hypothesis.given(NAMES.filter(is_allowed))
def test_a_name_comes_back(filename: str) -> None:
    attachment = builder.Attachment(filename=filename, content=b"x", content_type="image/png")
    (part,) = stdlib_parser.build(attachments=[attachment]).iter_parts()
    assert part["Content-Disposition"].params["filename"] == filename
    assert part["Content-Disposition"].defects == ()
    assert part.get_content_disposition() == "attachment"


@hypothesis.given(NAMES.filter(is_allowed))
def test_lines_are_short_unless_the_name_is_one_long_word(filename: str) -> None:
    field = file_names.content_disposition("inline", filename)
    for line in field.removesuffix("\r\n").split("\r\n"):
        assert len(line) <= 78 or line.startswith(' filename="')
        assert len(line) <= 998
        assert line.isascii()


@pytest.mark.parametrize(
    "filename, field",
    [
        ("a b.pdf", 'attachment; filename="a b.pdf"'),
        ('a"b.pdf', 'attachment; filename="a\\"b.pdf"'),
        ("Résumé.pdf", "attachment; filename*=utf-8''R%C3%A9sum%C3%A9.pdf"),
        ("請求書.pdf", "attachment;\r\n filename*=utf-8''%E8%AB%8B%E6%B1%82%E6%9B%B8.pdf"),
        ("a=?b", "attachment; filename*=utf-8''a%3D%3Fb"),
        (" a", "attachment; filename*=utf-8''%20a"),
    ],
)
def test_a_name_is_written_in_the_simplest_form_that_every_reader_takes(filename: str, field: str) -> None:
    assert file_names.content_disposition("attachment", filename) == f"Content-Disposition: {field}\r\n"


def test_a_long_name_is_cut_between_characters_and_numbered() -> None:
    field = file_names.content_disposition("attachment", "漢字" * 127)
    sections = re.findall(r" filename\*(\d+)\*=(?:utf-8'')?((?:%[0-9A-F]{2})+);?\r\n", field)
    assert [int(number) for number, _ in sections] == list(range(len(sections)))
    assert bytes.fromhex("".join(text for _, text in sections).replace("%", "")).decode() == "漢字" * 127


def test_a_look_alike_that_grows_stays_within_a_line() -> None:
    field = file_names.content_disposition("attachment", "\ufdfa" * 255)
    assert max(map(len, field.split("\r\n"))) <= 998


@pytest.mark.parametrize(
    "filename", ["", "a" * 256, ".", "..", "a/b", "a\\b", "a\nb", "a\0b", "a\tb", "a\u202eb", "=?a?q?b?="]
)
def test_what_is_more_than_a_name_is_refused(filename: str) -> None:
    assert not is_allowed(filename)


@hypothesis.given(st.text(max_size=300) | st.text("a./\\=?qb\n\t\u202e", max_size=12))
def test_the_pattern_says_the_same_as_the_check(filename: str) -> None:
    hypothesis.assume(not re.search("[\ud800-\udfff]", filename))
    assert STDLIB.is_valid(filename) == is_allowed(filename)


# Strangers' names for files become plain names and fields of HTTP that hold nothing else.


PATTERN = re.compile(r"attachment; filename=\"([ !#$&-:<-\[\]-~]+)\"(?:; filename\*=UTF-8''([A-Za-z0-9_.~%-]+))?")


@pytest.mark.parametrize(
    "name, safe",
    [
        ("invoice.pdf", "invoice.pdf"),
        ("../../etc/cron.d/x", "x"),
        ("C:\\x", "x"),
        ("C:\\Windows\\evil.exe", "evil.exe"),
        ("a\0b\r\nBcc: x.txt", "abBcc: x.txt"),
        ("cod\u202efdp.exe", "codfdp.exe"),
        ("a\u200f\u200b\ufeff\u2066\u061c.txt", "a.txt"),
        ('quo"te.txt', 'quo"te.txt'),
        ("  spaced.txt ", "spaced.txt"),
        ("x" * 10_000 + ".pdf", "x" * 251 + ".pdf"),
        ("." + "y" * 10_000, "." + "y" * 254),
        ("Grüße 🎉.txt", "Grüße 🎉.txt"),
        ("\ud800.txt", ".txt"),
        ("dir/", None),
        ("", None),
        (".", None),
        ("a/..", None),
        ("\u202e", None),
    ],
)
def test_a_name_keeps_what_is_seen_of_its_last_part(name: str, safe: str | None) -> None:
    assert file_names.download_name(name) == safe


@pytest.mark.parametrize(
    "name, value",
    [
        ("report (1).pdf", 'attachment; filename="report (1).pdf"'),
        ("", 'attachment; filename="download"'),
        ('a"b.txt', "attachment; filename=\"a_b.txt\"; filename*=UTF-8''a%22b.txt"),
        ("a;b%20.txt", "attachment; filename=\"a_b_20.txt\"; filename*=UTF-8''a%3Bb%2520.txt"),
        ("Grüße.txt", "attachment; filename=\"Gru_e.txt\"; filename*=UTF-8''Gr%C3%BC%C3%9Fe.txt"),
        ("=?utf-8?q?x?=", "attachment; filename=\"__utf-8_q_x__\"; filename*=UTF-8''%3D%3Futf-8%3Fq%3Fx%3F%3D"),
    ],
)
def test_the_field_is_ascii_without_escapes(name: str, value: str) -> None:
    assert file_names.download_disposition(name) == value


@given(st.text(st.characters(), max_size=300))
def test_whatever_the_name_the_field_is_one_line_and_says_the_safe_name(name: str) -> None:
    found = PATTERN.fullmatch(file_names.download_disposition(name))
    assert found is not None
    assert (urllib.parse.unquote(found[2]) if found[2] else found[1]) == (file_names.download_name(name) or "download")
    assert not {"/", "\\"} & set(found[1])
