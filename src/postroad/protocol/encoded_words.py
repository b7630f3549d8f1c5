"""Encoded words: text of any script in the ASCII of a header (RFC 2047).

A text becomes one or more words of at most 75 characters (section 2), each of whole characters (section 5), all in
the shorter one of the Q and B encodings. Q leaves only those characters alone that section 5 (3) allows inside a
phrase, so that one encoding serves subjects and display names alike.
"""

import binascii
from typing import Final

MAXIMUM_CHARACTERS: Final = 75
# `=?utf-8?q?` and `?=`, around the twelve characters that Q may need for a single character.
MINIMUM_ROOM: Final = 12 + 12
_SHELL: Final = 12
_PLAIN_IN_PHRASE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_Q: Final = tuple(
    chr(octet) if octet in _PLAIN_IN_PHRASE else "_" if octet == ord(" ") else f"={octet:02X}" for octet in range(256)
)


def encode(text: str, *, room: int) -> list[str]:
    """The text as encoded words; the first is at most `room` characters long, which is at least `MINIMUM_ROOM`."""
    octets = text.encode()
    quoted_length = len(_quote(octets))
    base64_length = _base64_length(len(octets))
    base64 = base64_length < quoted_length
    fits = min(base64_length, quoted_length) + _SHELL <= min(room, MAXIMUM_CHARACTERS)
    chunks = [octets] if fits else _split(text, room=room, base64=base64)
    return [_word(chunk, base64=base64) for chunk in chunks]


def _word(octets: bytes, *, base64: bool) -> str:
    if base64:
        return f"=?utf-8?b?{binascii.b2a_base64(octets, newline=False).decode('ascii')}?="
    return f"=?utf-8?q?{_quote(octets)}?="


def _quote(octets: bytes) -> str:
    return "".join([_Q[octet] for octet in octets])


def _base64_length(octets: int) -> int:
    return (octets + 2) // 3 * 4


def _split(text: str, *, room: int, base64: bool) -> list[bytes]:
    """The text in chunks of whole characters that fit, encoded, into the room of their words."""
    chunks: list[bytes] = []
    chunk = b""
    length = 0
    available = min(room, MAXIMUM_CHARACTERS) - _SHELL
    for character in text:
        octets = character.encode()
        longer = _base64_length(len(chunk) + len(octets)) if base64 else length + len(_quote(octets))
        if longer > available:
            chunks.append(chunk)
            chunk, longer = b"", _base64_length(len(octets)) if base64 else len(_quote(octets))
            available = MAXIMUM_CHARACTERS - _SHELL
        chunk += octets
        length = longer
    chunks.append(chunk)
    return chunks
