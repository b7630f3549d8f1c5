"""Encoded words: short enough, whole characters each, and the same text again for the standard library."""

import binascii
import email.header
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol.mime import header_fields

WORD = re.compile(r"=\?utf-8\?(?:q\?[A-Za-z0-9!*+/=_-]+|b\?[A-Za-z0-9+/]+={0,2})\?=")
CHARSETS = [
    *("us-ascii", "utf-8", "utf8", *(f"iso-8859-{part}" for part in range(1, 17) if part != 12)),
    *(f"windows-{page}" for page in range(1250, 1259)),
    *("koi8-r", "koi8-u", "tis-620", "gb2312", "gbk", "gb18030", "big5", "shift_jis", "euc-jp", "iso-2022-jp"),
    *("euc-kr", "ks_c_5601-1987", "iso-2022-kr"),
]
ROOMS = st.integers(24, 200)


def decode(words: list[str]) -> str:
    ((octets, charset),) = email.header.decode_header(" ".join(words))
    assert charset == "utf-8"
    assert isinstance(octets, bytes)
    return octets.decode()


@pytest.mark.parametrize(
    "text, words",
    [
        ("für", ["=?utf-8?q?f=C3=BCr?="]),
        ("Viele Grüße aus Bonn", ["=?utf-8?q?Viele_Gr=C3=BC=C3=9Fe_aus_Bonn?="]),
        ("Grüße aus Köln", ["=?utf-8?b?R3LDvMOfZSBhdXMgS8O2bG4=?="]),
        ("日本", ["=?utf-8?b?5pel5pys?="]),
        ("a=?b", ["=?utf-8?q?a=3D=3Fb?="]),
        ("über_1 (x)", ["=?utf-8?b?w7xiZXJfMSAoeCk=?="]),
    ],
)
def test_the_shorter_encoding_is_taken(text: str, words: list[str]) -> None:
    assert header_fields.encode_words(text, room=75) == words


@hypothesis.given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=300), ROOMS)
def test_any_text_comes_back_and_every_word_is_well_formed(text: str, room: int) -> None:
    words = header_fields.encode_words(text, room=room)
    assert decode(words) == text
    assert len(words[0]) <= room
    for word in words:
        assert len(word) <= 75
        assert WORD.fullmatch(word)
        decode([word])  # raises when a character is cut in two


def test_a_word_is_filled_before_the_next_begins() -> None:
    words = header_fields.encode_words("é" + "a" * 57 + "b" * 64, room=75)
    assert [len(word) for word in words] == [75, 75, 13]


@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
def test_the_smallest_room_is_enough_for_any_character(character: str) -> None:
    words = header_fields.encode_words(character * 100 + "=" * 30, room=24)
    assert len(words[0]) <= 24
    assert decode(words) == character * 100 + "=" * 30


def test_words_are_filled_before_the_next_one_begins() -> None:
    words = header_fields.encode_words("ü" * 200, room=75)
    assert all(len(word) > 75 - 6 for word in words[:-1])


@hypothesis.given(st.text(st.characters(codec="utf-8"), max_size=300), ROOMS)
def test_what_was_encoded_is_decoded(text: str, room: int) -> None:
    assert header_fields.decode_words(" ".join(header_fields.encode_words(text, room=room))) == text


@pytest.mark.parametrize(
    "text, decoded",
    [
        ("", ""),
        ("plain = ? text", "plain = ? text"),
        ("=?utf-8?q?f=C3=BCr_dich?=", "für dich"),
        ("=?UTF-8?Q?f=c3=bcr?=", "für"),
        ("Re: =?utf-8?b?QsO8cm8=?= in  Bonn", "Re: Büro in  Bonn"),
        ("=?iso-8859-1?q?f=FCr?= =?utf-8?q?_dich?=", "für dich"),
        ("=?windows-1252?q?=80?=", "€"),
        ("=?iso-2022-jp?b?GyRCRnxLXBsoQg==?=", "日本"),
        ("=?gb2312?b?xOO6ww==?=", "你好"),
        ("=?utf-8*de?q?f=C3=BCr?=", "für"),
        ("=?utf-8?q?a?=  \t =?utf-8?q?b?=", "ab"),
        ("=?utf-8?q?a?= x =?utf-8?q?b?=", "a x b"),
        ("=?utf-8?q?a?==?utf-8?q?b?=", "ab"),
        ("(=?utf-8?q?a?=)", "(a)"),
        ("=?utf-8?b?w7w?=", "ü"),
        ("=?utf-8?b?w7w=w7w=?=", "ü"),
        ("=?utf-8?b?ww==?= =?utf-8?b?vA==?=", "ü"),
        ("=?utf-8?q?two words?=", "two words"),
        ("=?utf-8?q??=", ""),
        ("=?utf-8?q?=FF?=", "\ufffd"),
        ("=?utf-8?q?100=?=", "100"),
        ("=?utf-8?q?=0D=0ABcc:_x?=", "\r\nBcc: x"),
    ],
)
def test_the_words_of_others_are_read(text: str, decoded: str) -> None:
    assert header_fields.decode_words(text) == decoded


@pytest.mark.parametrize(
    "text",
    [
        "=?utf-8?b?w?=",
        "=?x-unknown?q?a?=",
        "=?zlib?b?eJwDAAAAAAE=?=",
        "=?unicode_escape?q?=5Cx41?=",
        "=?idna?q?xn--a?=",
        "=?utf-8?x?a?=",
        "=?utf-8?q?a",
        "=?utf-8?q?ü?=",
        "=??q?a?=",
    ],
)
def test_what_cannot_be_read_stays_as_it_is(text: str) -> None:
    assert header_fields.decode_words(text) == text
    assert header_fields.decode_words(f"{text} =?utf-8?q?b?=") == f"{text} b"


@pytest.mark.parametrize("charset", CHARSETS)
@hypothesis.given(octets=st.binary(min_size=1, max_size=30))
def test_every_character_set_is_known_and_gives_text_that_can_be_stored(charset: str, octets: bytes) -> None:
    text = binascii.b2a_base64(octets, newline=False).decode()
    assert header_fields.decode_words(f"=?{charset}?b?{text}?=") == octets.decode(charset, "replace")
    octets.decode(charset, "replace").encode()


@hypothesis.given(st.text("=?utf-8qb_ \tAé\r\n", max_size=80) | st.text(max_size=80))
def test_no_text_fails_or_grows(text: str) -> None:
    assert len(header_fields.decode_words(text)) <= len(text)


@pytest.mark.parametrize(
    "pattern", ["=?", "=?a?", "=?utf-8?q?", "=?utf-8?q?a?= ", "=?utf-8?q?a?=x", "?", "=?utf-8?b?w?="]
)
def test_a_long_hostile_text_is_read_like_a_short_one(pattern: str) -> None:
    once, count = header_fields.decode_words(pattern), 256 * 1024 // len(pattern)
    decoded = header_fields.decode_words(pattern * count)
    assert len(decoded) in {len(once) * count, len("a") * count + len(" ")}
