"""Random secrets, and the keys derived from the installation's secret key.

The operator keeps one key; each use derives its own from it (HKDF, RFC 5869), so that a leak of one does not affect
another. API keys and passwords end in a checksum: a mistyped one is refused without a query.
"""

import hashlib
import secrets
import zlib
from dataclasses import dataclass, field
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from postroad.model.mail import statuses

ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# An API key says for which mode it is; both prefixes have the same length.
API_KEY_PREFIX: Final = "pr_live_"
TEST_KEY_PREFIX: Final = "pr_test_"
API_KEY_PREFIXES: Final = (API_KEY_PREFIX, TEST_KEY_PREFIX)
# 30 characters of 62 are 178 bits: unguessable, so an API key can be stored as plain SHA-256.
SECRET_CHARACTERS: Final = 30
CHECKSUM_CHARACTERS: Final = 6
DERIVED_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys derived from the installation's key; their repr hides them."""

    token: bytes = field(repr=False)
    session: bytes = field(repr=False)
    return_path: bytes = field(repr=False)
    unsubscribe: bytes = field(repr=False)
    encryption: bytes = field(repr=False)
    # Says nothing about the key, and so may be stored and shown.
    fingerprint: bytes = field(repr=False)
    # Derived from the keys that this one replaced, newest first: what they signed is still accepted.
    previous: "tuple[Keys, ...]" = field(default=(), repr=False)

    @classmethod
    def derive(cls, installation_key: bytes) -> "Keys":
        return cls(
            token=_derive(installation_key, b"postroad token v1"),
            session=_derive(installation_key, b"postroad session v1"),
            return_path=_derive(installation_key, b"postroad return path v1"),
            unsubscribe=_derive(installation_key, b"postroad unsubscribe v1"),
            encryption=_derive(installation_key, b"postroad sealing v1"),
            fingerprint=_derive(installation_key, b"postroad fingerprint v1"),
        )


def _derive(installation_key: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=DERIVED_BYTES, salt=None, info=purpose).derive(installation_key)


def random_text(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def new_api_key(mode: statuses.Mode = statuses.Mode.LIVE) -> str:
    """An API key: prefix, secret, checksum."""
    secret = (TEST_KEY_PREFIX if mode is statuses.Mode.TEST else API_KEY_PREFIX) + random_text(SECRET_CHARACTERS)
    return secret + checksum(secret)


def is_api_key(text: str) -> bool:
    length = len(API_KEY_PREFIX) + SECRET_CHARACTERS + CHECKSUM_CHARACTERS
    if len(text) != length or not text.isascii() or not text.startswith(API_KEY_PREFIXES):
        return False
    return checksum(text[:-CHECKSUM_CHARACTERS]) == text[-CHECKSUM_CHARACTERS:]


def is_test_key(text: str) -> bool:
    """Whether an API key, or the beginning of one, is for test mode."""
    return text.startswith(TEST_KEY_PREFIX)


def hash_api_key(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def checksum(text: str) -> str:
    """Six characters that detect a mistyped or truncated secret."""
    number, characters = zlib.crc32(text.encode()), []
    for _ in range(CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(ALPHABET))
        characters.append(ALPHABET[digit])
    return "".join(characters)
