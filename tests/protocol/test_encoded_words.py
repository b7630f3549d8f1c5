"""Encoded words: short enough, whole characters each, and the same text again for the standard library."""

import email.header
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from postroad.protocol import encoded_words

WORD = re.compile(r"=\?utf-8\?(?:q\?[A-Za-z0-9!*+/=_-]+|b\?[A-Za-z0-9+/]+={0,2})\?=")
ROOMS = st.integers(encoded_words.MINIMUM_ROOM, 200)


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
    assert encoded_words.encode(text, room=75) == words


@hypothesis.given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=300), ROOMS)
def test_any_text_comes_back_and_every_word_is_well_formed(text: str, room: int) -> None:
    words = encoded_words.encode(text, room=room)
    assert decode(words) == text
    assert len(words[0]) <= room
    for word in words:
        assert len(word) <= encoded_words.MAXIMUM_CHARACTERS
        assert WORD.fullmatch(word)
        decode([word])  # raises when a character is cut in two


@pytest.mark.parametrize("character", ["a", "é", "漢", "😀"])
def test_the_smallest_room_is_enough_for_any_character(character: str) -> None:
    words = encoded_words.encode(character * 100 + "=" * 30, room=encoded_words.MINIMUM_ROOM)
    assert len(words[0]) <= encoded_words.MINIMUM_ROOM
    assert decode(words) == character * 100 + "=" * 30


def test_words_are_filled_before_the_next_one_begins() -> None:
    words = encoded_words.encode("ü" * 200, room=75)
    assert all(len(word) > 75 - 6 for word in words[:-1])
