"""Text bodies as octets that every mail host can transport (RFC 2045 section 6).

ASCII with lines of at most 998 characters is sent as it is (`7bit`), other ASCII as quoted-printable, because filters
take base64 around plain text for a disguise. Everything else is quoted-printable or base64, whichever is smaller.
`8bit` is never used: a host on the way may not offer it and would have to change the signed message.

In the text of a message every line end becomes CRLF, and NUL is refused (RFC 5322 section 4.1). A file keeps its bytes,
unless it is a message itself: RFC 2046 section 5.2.1 allows no encoding for it, so it is `7bit` or refused.
"""

import binascii
import io
import re
import struct
from typing import Final

# Base64: strict decoding, and encoding in lines of 76 characters (RFC 4648, RFC 2045 section 6.8).
#
# Decoding accepts the standard alphabet with padding, and line breaks, which many encoders write; nothing else, so that
# a damaged file is refused and not silently truncated. Encoding is optimised for files of many megabytes.
# `up_to_padding` is for mail from outside, which is read as far as it can be.

LINE_CHARACTERS: Final = 76
# JSON Schema's view of what `decode_strict` accepts: groups of four, the last one padded, line breaks anywhere.
_LETTER: Final = r"[\r\n]*[A-Za-z0-9+/]"
_PAD: Final = r"[\r\n]*="
BASE64_PATTERN: Final = rf"^(?:(?:{_LETTER}){{4}})*(?:(?:{_LETTER}){{2}}{_PAD}{_PAD}|(?:{_LETTER}){{3}}{_PAD})?[\r\n]*$"

_OUTSIDE_ALPHABET: Final = re.compile(r"[^A-Za-z0-9+/=\r\n]")
_OUTSIDE_BASE64: Final = bytes(octet for octet in range(256) if not re.match(rb"[A-Za-z0-9+/=]", bytes([octet])))
# A group of four letters, and the last one. A "=" is padding only where it completes a group.
_GROUP: Final = rb"=*[^=]=*[^=]=?[^=][^=]"
_PADDED: Final = re.compile(rb"(?:" + _GROUP + rb")*+=*[^=]=*[^=](?:==|=?[^=]=)")
# Cutting lines many at a time is several times faster than slicing them one by one; 16 serve short bodies too.
_BLOCK_LINES: Final = 16
_BLOCK: Final = struct.Struct(f"{LINE_CHARACTERS}s" * _BLOCK_LINES)


class Base64Error(ValueError):
    """The text is not base64. The message says what is wrong and where; it is safe to show."""


def decode_base64(text: str) -> bytes:
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


def base64_up_to_padding(octets: bytes) -> bytes:
    """The same base64 without what follows its padding, which is where it ends (RFC 2045 section 6.8).

    Versions of Python differ in what they make of the rest.
    """
    if b"=" not in octets.rstrip(b"=\r\n \t"):
        return octets
    kept = octets.translate(None, _OUTSIDE_BASE64)
    padded = _PADDED.match(kept)
    letters = (padded[0] if padded else kept).translate(None, b"=")
    return letters + b"=" * (-len(letters) % 4) if padded else letters


def encode_base64(octets: bytes) -> bytes:
    """Base64 in lines of 76 characters with CRLF between them, and none after the last."""
    encoded = binascii.b2a_base64(octets, newline=False)
    whole_blocks = len(encoded) // _BLOCK.size * _BLOCK.size
    blocks = [b"\r\n".join(lines) for lines in _BLOCK.iter_unpack(encoded[:whole_blocks])]
    rest = range(whole_blocks, len(encoded), LINE_CHARACTERS)
    return b"\r\n".join(blocks + [encoded[start : start + LINE_CHARACTERS] for start in rest])


def length_as_base64(octets: int) -> int:
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


MAX_LINE_CHARACTERS: Final = 998  # RFC 5322 section 2.1.1
_ASCII: Final = bytes(range(128))
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_NOT_BASE64: Final = bytes(octet for octet in range(256) if octet not in _BASE64)
# Line ends that are not CRLF, and NUL: `7bit` has no place for them (RFC 2045 section 2.7).
_NOT_7BIT: Final = re.compile(rb"\0|\r(?!\n)|(?<!\r)\n")
_MAX_QUOTED_LINE: Final = 78  # RFC 2045 section 6.7 (5), with CRLF
# The library writes lines of 77 characters when a blank or a bare line end meets the limit. They are cut once more, not
# within an escaped octet.
_TOO_LONG: Final = re.compile(rb"^(?=[^\r\n]{77})(.{1,75})(?<!=)(?<!=.)", re.MULTILINE)


class BodyError(ValueError):
    """The text may not be the body of a message. The message says why and is safe to show."""


def encode(text: str) -> tuple[str, bytes]:
    """The name of the transfer encoding, and the body in it."""
    if "\0" in text:
        raise BodyError("a body may not contain the character NUL (U+0000)")
    try:
        octets = text.encode()
    except UnicodeEncodeError:
        raise BodyError("a body may not contain an unpaired surrogate") from None
    if b"\r" in octets:
        octets = octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    other_octets = 0 if text.isascii() else len(octets.translate(None, _ASCII))
    must_encode = other_octets or _has_long_line(octets)
    octets = octets.replace(b"\n", b"\r\n")
    return _encode_smaller(octets, other_octets=other_octets) if must_encode else ("7bit", octets)


def decode(octets: bytes, encoding: str, *, repair: bool) -> bytes:
    """The octets of a body from outside without their transfer encoding, which is named in lower case.

    Never fails: invalid base64 is read as far as possible with `repair`, and is empty without.
    """
    if encoding == "quoted-printable":
        return binascii.a2b_qp(octets)
    if encoding != "base64":
        return octets
    octets = base64_up_to_padding(octets)
    try:
        return binascii.a2b_base64(octets + b"==" if repair else octets)  # some writers leave out the padding
    except binascii.Error:
        kept = octets.translate(None, _NOT_BASE64) if repair else b""
        return binascii.a2b_base64(kept[: len(kept) - (len(kept) % 4 == 1)] + b"==")


def encode_octets(octets: bytes) -> tuple[str, bytes]:
    """The same for text that is not ASCII, in any character set, whose lines end in CRLF."""
    encoding, body = _encode_smaller(octets, other_octets=len(octets.translate(None, _ASCII)))
    # Cutting a line must not make another that could be the delimiter of a multipart.
    if body.count(b"\n--") > octets.count(b"\n--"):
        return encode_file(octets)
    return encoding, body


def encode_file(octets: bytes) -> tuple[str, bytes]:
    return "base64", encode_base64(octets)


def encode_text_file(octets: bytes) -> tuple[str, bytes]:
    if not octets.isascii():
        return encode_file(octets)
    if _NOT_7BIT.search(octets) is None and not _has_long_line(octets):
        return "7bit", octets
    return "quoted-printable", _quoted_printable(octets, is_text=False)


def encode_message(octets: bytes) -> tuple[str, bytes]:
    """The same for a file that is a message, or a `BodyError`."""
    if b"\r" in octets:
        octets = octets.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if not octets.isascii() or b"\0" in octets or _has_long_line(octets):
        raise BodyError(
            f"a message/rfc822 file must be ASCII with lines of at most {MAX_LINE_CHARACTERS} characters, because "
            "mail allows no encoding for it; use 'application/octet-stream'"
        )
    return "7bit", octets.replace(b"\n", b"\r\n")


def _has_long_line(octets: bytes) -> bool:
    """Whether a line has over 998 characters, by hopping from line end to line end and not by looking at each line."""
    start = 0
    while len(octets) - start > MAX_LINE_CHARACTERS:
        end = octets.rfind(b"\n", start, start + MAX_LINE_CHARACTERS + 1)
        if end < 0:
            return True
        start = end + 1
    return False


def _encode_smaller(octets: bytes, *, other_octets: int) -> tuple[str, bytes]:
    if not other_octets:
        return "quoted-printable", _quoted_printable(octets, is_text=True)
    base64_length = length_as_base64(len(octets))
    # Quoted-printable spends three octets on each that is not ASCII: often that alone makes it the larger one.
    if len(octets) + 2 * other_octets < base64_length:
        quoted = _quoted_printable(octets, is_text=True)
        if len(quoted) < base64_length:
            return "quoted-printable", quoted
    return "base64", encode_base64(octets)


def _quoted_printable(octets: bytes, *, is_text: bool) -> bytes:
    """In lines of at most 76 characters. Line ends of a text stay, and are escaped in what is none."""
    quoted = binascii.b2a_qp(octets, istext=is_text)
    # The library takes its soft line breaks from the first line end that it sees, and writes LF when there is none.
    if not (is_text and b"\r\n" in octets):
        quoted = quoted.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    # Most texts have no such line, and cutting takes longer than all the rest.
    longest = max(map(len, io.BytesIO(quoted + b"\r\n")))
    return _TOO_LONG.sub(rb"\1=\r\n", quoted) if longest > _MAX_QUOTED_LINE else quoted
