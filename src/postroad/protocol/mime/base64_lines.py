"""Base64: strict decoding, and encoding in lines of 76 characters (RFC 4648, RFC 2045 section 6.8).

Decoding accepts the standard alphabet with padding, and line breaks, which many encoders write; nothing else, so that a
damaged file is refused and not silently truncated. Encoding is optimised for files of many megabytes.
`up_to_padding` is for mail from outside, which is read as far as it can be.
"""

import binascii
import re
import struct
from typing import Final

LINE_CHARACTERS: Final = 76
# JSON Schema's view of what `decode_strict` accepts: groups of four, the last one padded, line breaks anywhere.
_LETTER: Final = r"[\r\n]*[A-Za-z0-9+/]"
_PAD: Final = r"[\r\n]*="
SCHEMA_PATTERN: Final = rf"^(?:(?:{_LETTER}){{4}})*(?:(?:{_LETTER}){{2}}{_PAD}{_PAD}|(?:{_LETTER}){{3}}{_PAD})?[\r\n]*$"

_OUTSIDE_ALPHABET: Final = re.compile(r"[^A-Za-z0-9+/=\r\n]")
_NOT_BASE64: Final = bytes(octet for octet in range(256) if not re.match(rb"[A-Za-z0-9+/=]", bytes([octet])))
# A group of four letters, and the last one. A "=" is padding only where it completes a group.
_GROUP: Final = rb"=*[^=]=*[^=]=?[^=][^=]"
_PADDED: Final = re.compile(rb"(?:" + _GROUP + rb")*+=*[^=]=*[^=](?:==|=?[^=]=)")
# Cutting lines many at a time is several times faster than slicing them one by one; 16 serve short bodies too.
_BLOCK_LINES: Final = 16
_BLOCK: Final = struct.Struct(f"{LINE_CHARACTERS}s" * _BLOCK_LINES)


class Base64Error(ValueError):
    """The text is not base64. The message says what is wrong and where; it is safe to show."""


def decode_strict(text: str) -> bytes:
    """The octets that the text encodes, or a `Base64Error`."""
    try:
        octets = text.encode("ascii")
        if b"\n" in octets or b"\r" in octets:
            octets = octets.translate(None, b"\r\n")
        # The strict mode of the library overlooks padding that is too long.
        if len(octets) % 4 == 0 and not octets.endswith(b"==="):
            return binascii.a2b_base64(octets, strict_mode=True)
    except (UnicodeEncodeError, binascii.Error):
        pass
    raise Base64Error(_what_is_wrong(text))


def up_to_padding(octets: bytes) -> bytes:
    """The same base64 without what follows its padding, which is where it ends (RFC 2045 section 6.8).

    Versions of Python differ in what they make of the rest.
    """
    if b"=" not in octets.rstrip(b"=\r\n \t"):
        return octets
    kept = octets.translate(None, _NOT_BASE64)
    padded = _PADDED.match(kept)
    letters = (padded[0] if padded else kept).translate(None, b"=")
    return letters + b"=" * (-len(letters) % 4) if padded else letters


def encode(octets: bytes) -> bytes:
    """Base64 in lines of 76 characters with CRLF between them, and none after the last."""
    encoded = binascii.b2a_base64(octets, newline=False)
    whole_blocks = len(encoded) // _BLOCK.size * _BLOCK.size
    blocks = [b"\r\n".join(lines) for lines in _BLOCK.iter_unpack(encoded[:whole_blocks])]
    rest = range(whole_blocks, len(encoded), LINE_CHARACTERS)
    return b"\r\n".join(blocks + [encoded[start : start + LINE_CHARACTERS] for start in rest])


def encoded_length(octets: int) -> int:
    """How long `encode` makes that many octets."""
    characters = (octets + 2) // 3 * 4
    return characters + max(0, (characters - 1) // LINE_CHARACTERS) * 2


def _what_is_wrong(text: str) -> str:
    outside = _OUTSIDE_ALPHABET.search(text)
    if outside is not None:
        hint = "; the URL-safe alphabet is not accepted" if outside[0] in "-_" else ""
        return f"{outside[0]!r} at position {outside.start()} is not a character of base64{hint}"
    characters = text.translate({ord("\r"): None, ord("\n"): None})
    letters = characters.rstrip("=")
    if "=" in letters:
        return f"'=' is allowed only at the end of base64 (found at position {text.index('=')})"
    if len(letters) % 4 == 1:
        return "base64 has one character too many or is truncated"
    return f"base64 must end in {-len(letters) % 4} '=' here, not {len(characters) - len(letters)}"
