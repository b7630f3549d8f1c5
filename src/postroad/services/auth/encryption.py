"""Secrets that the store keeps and that must be read again: encrypted and authenticated (AES-256-GCM, RFC 5116).

What a secret belongs to is authenticated with it: a sealed secret that is moved to another row does not open. A nonce
is 96 random bits; a key may seal some four billion secrets before two of them could share one.
"""

from typing import Final

from cryptography import exceptions
from cryptography.hazmat.primitives.ciphers import aead

VERSION: Final = b"\x01"
NONCE_BYTES: Final = 12


class DecryptionError(Exception):
    """The secret was sealed with another installation's key, for another owner, or has been changed."""


def encrypt(key: bytes, secret: bytes, *, owner: str, nonce: bytes) -> bytes:
    """What is stored of a secret. The nonce must be random and never used before."""
    return VERSION + nonce + aead.AESGCM(key).encrypt(nonce, secret, owner.encode())


def decrypt(key: bytes, sealed: bytes, *, owner: str) -> bytes:
    """The secret that was sealed for this owner."""
    version, nonce, rest = sealed[:1], sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
    if version != VERSION or len(nonce) < NONCE_BYTES:
        raise DecryptionError(f"the secret of {owner} is not sealed in a way that this version knows")
    try:
        return aead.AESGCM(key).decrypt(nonce, rest, owner.encode())
    except exceptions.InvalidTag:
        raise DecryptionError(
            f"the secret of {owner} does not open with this installation's key; was security.secret_key changed?"
        ) from None
