"""The `Authorization` field of HTTP, as a value: Basic (RFC 7617) or Bearer (RFC 6750 section 2.1).

The scheme's name is compared without regard to case (RFC 9110 section 11.1). User names and passwords are UTF-8.
Secrets are kept out of `repr`, and a refusal never quotes what it refuses.
"""

import base64
import binascii
from dataclasses import dataclass, field
from typing import Final

# The name of the field, as our listeners read it.
FIELD: Final = b"authorization"
# A token of ours has some 400 characters, a name and a password at their longest some 2,000.
MAX_CHARACTERS: Final = 4096


class AuthorizationError(ValueError):
    """The field is malformed. The message is safe to show."""


@dataclass(frozen=True, slots=True)
class Basic:
    """A username and a password."""

    username: str
    password: str = field(repr=False)

    @property
    def secret(self) -> str:
        """All of it in one text, the same for every way of writing it."""
        return f"Basic {self.username}:{self.password}"


@dataclass(frozen=True, slots=True)
class Bearer:
    """A bearer token."""

    token: str = field(repr=False)

    @property
    def secret(self) -> str:
        """All of it in one text, the same for every way of writing it."""
        return f"Bearer {self.token}"


def parse(text: str) -> Basic | Bearer:
    """The credentials in the field, or an `AuthorizationError`."""
    if len(text) > MAX_CHARACTERS:
        raise AuthorizationError(f"longer than {MAX_CHARACTERS} characters")
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
