"""Encoded words: non-ASCII text in a header (RFC 2047).

A text becomes one or more words of at most 75 characters (section 2), each of whole characters (section 5), all in
the shorter one of the Q and B encodings. Q leaves only those characters alone that section 5 (3) allows inside a
phrase, so that one encoding serves subjects and display names alike.

Decoding is for input from outside: it never fails, and leaves alone what it cannot decode. Its result may contain line
breaks and other control characters: it is for display and for the store, never for a header.
"""

import binascii
import re
from typing import Final

from postroad.protocol.mime import base64_lines

MAX_CHARACTERS: Final = 75
# `=?utf-8?q?` and `?=`, around the twelve characters that Q may need for a single character.
MIN_ROOM: Final = 12 + 12
_SHELL: Final = 12
_PLAIN_IN_PHRASE: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*+-/")
_Q: Final = tuple(
    chr(octet) if octet in _PLAIN_IN_PHRASE else "_" if octet == ord(" ") else f"={octet:02X}" for octet in range(256)
)
# What mail is written in. Python knows more codecs, but some of them are slow, or are not character sets.
CHARSETS: Final = frozenset(
    "us-ascii utf-8 utf8 iso-8859-1 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5 iso-8859-6 iso-8859-7 iso-8859-8 "
    "iso-8859-9 iso-8859-10 iso-8859-11 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16 windows-1250 windows-1251 "
    "windows-1252 windows-1253 windows-1254 windows-1255 windows-1256 windows-1257 windows-1258 koi8-r koi8-u tis-620 "
    "gb2312 gbk gb18030 big5 shift_jis euc-jp iso-2022-jp euc-kr ks_c_5601-1987 iso-2022-kr".split()
)
# With the language of RFC 2231 section 5, and with the spaces in the text that some writers leave there.
_WORD: Final = re.compile(r"=\?([A-Za-z0-9_-]{1,40})(?:\*[A-Za-z0-9-]{0,40})?\?([BbQq])\?([ !->@-~]*)\?=")


def decode(text: str) -> str:
    """The text with its encoded words read; those of unknown character sets and malformed ones are kept."""
    if "=?" not in text:
        return text
    done: list[str] = []
    # Words of one character set that follow each other are read together: some writers cut characters in two.
    run: list[bytes] = []
    run_charset, end = "utf-8", 0
    for word in _WORD.finditer(text):
        charset = word[1].lower()
        octets = _octets(word[2], word[3]) if charset in CHARSETS else None
        if octets is None:
            continue
        gap = text[end : word.start()]
        # White space between two encoded words is not part of the text (section 6.2).
        follows = end > 0 and not gap.strip(" \t")
        if not (follows and charset == run_charset):
            done.append(b"".join(run).decode(run_charset, "replace"))
            run, run_charset = [], charset
        if not follows:
            done.append(gap)
        run.append(octets)
        end = word.end()
    return "".join([*done, b"".join(run).decode(run_charset, "replace"), text[end:]])


def _octets(encoding: str, text: str) -> bytes | None:
    """The decoded text of an encoded word; None when it is malformed."""
    if encoding in "Qq":
        return binascii.a2b_qp(text, header=True)
    try:
        # Some writers leave out the padding.
        return binascii.a2b_base64(base64_lines.up_to_padding(text.encode("ascii", "replace")) + b"==")
    except binascii.Error:
        return None


def encode(text: str, *, room: int) -> list[str]:
    """The text as encoded words; the first is at most `room` characters long, which is at least `MIN_ROOM`."""
    octets = text.encode()
    quoted_length = len(_quote(octets))
    base64_length = _base64_length(len(octets))
    base64 = base64_length < quoted_length
    fits = min(base64_length, quoted_length) + _SHELL <= min(room, MAX_CHARACTERS)
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
    available = min(room, MAX_CHARACTERS) - _SHELL
    for character in text:
        octets = character.encode()
        longer = _base64_length(len(chunk) + len(octets)) if base64 else length + len(_quote(octets))
        if longer > available:
            chunks.append(chunk)
            chunk, longer = b"", _base64_length(len(octets)) if base64 else len(_quote(octets))
            available = MAX_CHARACTERS - _SHELL
        chunk += octets
        length = longer
    chunks.append(chunk)
    return chunks
