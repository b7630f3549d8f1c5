"""Names and values in a query string or in an HTML form (URL standard, section 5.1).

The parser is stricter than browsers: every `%` begins an escape, and escaped octets are UTF-8. It takes milliseconds
for each MiB, whatever the content, and works on small pieces, so that in its own thread it never blocks others for
long.
"""

import binascii
from collections.abc import Iterator
from typing import Final

PIECE_OCTETS: Final = 64 * 1024


class FormError(ValueError):
    """The bytes are not names and values, or too many of them."""


def read(text: bytes, *, limit: int) -> list[tuple[str, str]]:
    """The fields in their order; one without `=` has an empty value. Raises FormError."""
    if not text.isascii() or b"\r" in text or b"\n" in text or text.count(b"&") >= limit:
        raise FormError
    pairs = (pair.partition(b"=") for pair in text.split(b"&") if pair)
    return [(_decoded(name), _decoded(value)) for name, _, value in pairs]


def _decoded(text: bytes) -> str:
    if b"%" not in text:
        return text.replace(b"+", b" ").decode()
    try:
        return b"".join(map(_unescaped, _pieces(text))).decode()
    except UnicodeDecodeError:
        raise FormError from None


def _pieces(text: bytes) -> Iterator[bytes]:
    """The text in pieces that divide no escape."""
    at = 0
    while at < len(text):
        end = at + PIECE_OCTETS
        divided = text.rfind(b"%", end - 2, end)
        end = end if divided < 0 else divided
        yield text[at:end]
        at = end


def _unescaped(piece: bytes) -> bytes:
    """Decoded as quoted-printable, which has the same escapes with another sign and a decoder twenty times as fast.

    That decoder accepts invalid escapes. Each valid one shortens the text by two octets, and without line ends nothing
    else does, so the length shows whether all were valid.
    """
    quoted = piece.replace(b"+", b" ").replace(b"=", b"=3D").replace(b"%", b"=")
    octets = binascii.a2b_qp(quoted)
    if len(octets) != len(piece) - 2 * piece.count(b"%"):
        raise FormError
    return octets
