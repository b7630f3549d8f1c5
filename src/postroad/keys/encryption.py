"""Encryption of stored secrets that must be read again (AES-256-GCM, RFC 5116), and whose secret a ciphertext is."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

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
    version, nonce, rest = sealed[:1], sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
    if version != VERSION or len(nonce) < NONCE_BYTES:
        raise DecryptionError(f"the secret of {owner} has an encryption format that this version does not support")
    try:
        return aead.AESGCM(key).decrypt(nonce, rest, owner.encode())
    except exceptions.InvalidTag:
        raise DecryptionError(
            f"the secret of {owner} cannot be decrypted with this installation's key; "
            "was security.installation_key changed?"
        ) from None


# Whose secret a ciphertext is, for everything that is encrypted with the installation key (`encryption.py`).
#
# The owner is authenticated with the ciphertext, so it must be computed the same way wherever the secret is used.


def acme_account_owner(directory: str) -> str:
    return f"the ACME account at {directory}"


def certificate_owner(directory: str, names: str) -> str:
    return f"the certificate of {names} from {directory}"


def dkim_owner(account_id: str, domain_id: str) -> str:
    return f"dkim {account_id} {domain_id}"


def sso_owner(account_id: str) -> str:
    return f"single sign-on {account_id}"


def totp_owner(login_id: str) -> str:
    return f"totp {login_id}"


def webhook_owner(webhook_id: str) -> str:
    return f"webhook {webhook_id}"


def webhook_headers_owner(webhook_id: str) -> str:
    return f"webhook headers {webhook_id}"


# From a row of `storage/operations/installation_key.py` to its owner.
OWNERS: Final[Mapping[str, Callable[[Sequence[Any]], str]]] = {
    "acme_accounts": lambda row: acme_account_owner(row[0]),
    "certificates": lambda row: certificate_owner(row[0], row[1]),
    "dkim_keys": lambda row: dkim_owner(row[0], row[1]),
    "sso_connections": lambda row: sso_owner(row[0]),
    "totp_secrets": lambda row: totp_owner(row[0]),
    "webhook_secrets": lambda row: webhook_owner(row[1]),
    "webhooks": lambda row: webhook_headers_owner(row[0]),
}
