"""Strangers' names for files become plain names and fields of HTTP that hold nothing else."""

import re
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroad.protocol.mime import file_names

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
