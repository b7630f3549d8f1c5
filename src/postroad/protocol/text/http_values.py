"""Values of HTTP requests: the `Authorization` field (RFC 7617, RFC 6750), query strings and forms (URL standard)."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

# The name of the field, as our listeners read it.
AUTHORIZATION: Final = b"authorization"
# A token of ours has some 400 characters, a name and a password at their longest some 2,000.
MAX_AUTHORIZATION_CHARACTERS: Final = 4096


class AuthorizationError(ValueError):
    """The field is malformed. The message is safe to show."""


@dataclass(frozen=True, slots=True)
class Basic:
    username: str
    password: str = field(repr=False)

    @property
    def secret(self) -> str:
        """All of it in one text, the same for every way of writing it."""
        return f"Basic {self.username}:{self.password}"


@dataclass(frozen=True, slots=True)
class Bearer:
    token: str = field(repr=False)

    @property
    def secret(self) -> str:
        """All of it in one text, the same for every way of writing it."""
        return f"Bearer {self.token}"


def parse_authorization(text: str) -> Basic | Bearer:
    """The credentials in the field, or an `AuthorizationError`."""
    if len(text) > MAX_AUTHORIZATION_CHARACTERS:
        raise AuthorizationError(f"longer than {MAX_AUTHORIZATION_CHARACTERS} characters")
    scheme, _, value = text.strip(" \t").partition(" ")
    value = value.lstrip(" ")
    if not value or not value.isascii() or not value.isprintable() or " " in value:
        raise AuthorizationError("malformed; expected a scheme, a space and one value")
    match scheme.lower():
        case "bearer":
            return Bearer(value)
        case "basic":
            return _basic(value)
        case _:
            raise AuthorizationError("unknown scheme; use Basic or Bearer")


def _basic(value: str) -> Basic:
    try:
        text = base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise AuthorizationError("malformed; Basic must be followed by username:password as UTF-8 in base64") from None
    username, colon, password = text.partition(":")
    if not colon:
        raise AuthorizationError("malformed; a colon must separate username and password")
    return Basic(username, password)


# Names and values in a query string or in an HTML form (URL standard, section 5.1).
#
# The parser is stricter than browsers: every `%` begins an escape, and escaped octets are UTF-8. It takes milliseconds
# for each MiB, whatever the content, and works on small pieces, so that in its own thread it never blocks others for
# long.

PIECE_OCTETS: Final = 64 * 1024


class FormError(ValueError):
    """The bytes are not names and values, or too many of them."""


def read_form(text: bytes, *, limit: int) -> list[tuple[str, str]]:
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
