"""Encryption of stored secrets that must be read again (AES-256-GCM, RFC 5116).

The owner is authenticated data: a ciphertext moved to another row does not decrypt. The nonce is 96 random bits; a key
may encrypt some four billion secrets before two could share one.
"""

from typing import Final

from cryptography import exceptions
from cryptography.hazmat.primitives.ciphers import aead

VERSION: Final = b"\x01"
NONCE_BYTES: Final = 12


class DecryptionError(Exception):
    """The secret was encrypted with another key or for another owner, or was modified."""


def encrypt(key: bytes, secret: bytes, *, owner: str, nonce: bytes) -> bytes:
    """The ciphertext to store. The nonce must be random and never reused."""
    return VERSION + nonce + aead.AESGCM(key).encrypt(nonce, secret, owner.encode())


def decrypt(key: bytes, sealed: bytes, *, owner: str) -> bytes:
    """The secret that was encrypted for this owner."""
    version, nonce, rest = sealed[:1], sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
    if version != VERSION or len(nonce) < NONCE_BYTES:
        raise DecryptionError(f"the secret of {owner} has an encryption format that this version does not support")
    try:
        return aead.AESGCM(key).decrypt(nonce, rest, owner.encode())
    except exceptions.InvalidTag:
        raise DecryptionError(
            f"the secret of {owner} cannot be decrypted with this installation's key; was security.secret_key changed?"
        ) from None
