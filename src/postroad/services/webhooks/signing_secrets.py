"""Webhook signing secrets: random, shown once, and stored encrypted for their endpoint.

Every signature needs the secret, so it is encrypted and not hashed. Decryption takes microseconds; nothing decrypted is
kept.
"""

from typing import Final

from postroad.services import context
from postroad.services.auth import encryption, installation_keys, sealed_values
from postroad.storage import webhooks

PREFIX: Final = "whsec_"
# 43 characters of 62 are 256 bits, as much as the signature's hash can use (RFC 2104 section 3). One more makes them
# whole base64, which libraries for Standard Webhooks and Svix decode.
SECRET_CHARACTERS: Final = 44
# Enough to tell two secrets apart, and no help in guessing one.
HINT_CHARACTERS: Final = 4


def new() -> str:
    """A new secret."""
    return PREFIX + installation_keys.random_text(SECRET_CHARACTERS)


def hint(secret: str) -> str:
    """The part of a secret that may always be shown."""
    return f"{PREFIX}…{secret[-HINT_CHARACTERS:]}"


def encrypt(ctx: context.Context, secret: str, *, webhook_id: str) -> bytes:
    """The ciphertext of a secret."""
    nonce = ctx.entropy(encryption.NONCE_BYTES)
    return encryption.encrypt(
        ctx.keys.encryption, secret.encode(), owner=sealed_values.webhook_owner(webhook_id), nonce=nonce
    )


def decrypt(ctx: context.Context, row: webhooks.Secret) -> str:
    """The secret of a row."""
    return encryption.decrypt(
        ctx.keys.encryption, row.secret, owner=sealed_values.webhook_owner(row.webhook_id)
    ).decode()
