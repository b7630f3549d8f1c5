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
from typing import Final

from postroad.protocol.mime import base64_lines

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
    octets = base64_lines.up_to_padding(octets)
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
    """The same for a file."""
    return "base64", base64_lines.encode(octets)


def encode_text_file(octets: bytes) -> tuple[str, bytes]:
    """The same for a file of text."""
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
    base64_length = base64_lines.encoded_length(len(octets))
    # Quoted-printable spends three octets on each that is not ASCII: often that alone makes it the larger one.
    if len(octets) + 2 * other_octets < base64_length:
        quoted = _quoted_printable(octets, is_text=True)
        if len(quoted) < base64_length:
            return "quoted-printable", quoted
    return "base64", base64_lines.encode(octets)


def _quoted_printable(octets: bytes, *, is_text: bool) -> bytes:
    """In lines of at most 76 characters. Line ends of a text stay, and are escaped in what is none."""
    quoted = binascii.b2a_qp(octets, istext=is_text)
    # The library takes its soft line breaks from the first line end that it sees, and writes LF when there is none.
    if not (is_text and b"\r\n" in octets):
        quoted = quoted.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    # Most texts have no such line, and cutting takes longer than all the rest.
    longest = max(map(len, io.BytesIO(quoted + b"\r\n")))
    return _TOO_LONG.sub(rb"\1=\r\n", quoted) if longest > _MAX_QUOTED_LINE else quoted
