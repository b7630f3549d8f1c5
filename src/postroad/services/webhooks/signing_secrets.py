"""The secrets that sign webhooks: random, shown once, and stored sealed for the endpoint that they belong to.

They have to be read again for every signature, so they are encrypted and not hashed. Opening one takes microseconds;
nothing opened is kept.
"""

from typing import Final

from postroad.services import context
from postroad.services.auth import encryption, installation_keys
from postroad.storage import webhooks

PREFIX: Final = "whsec_"
# 43 characters of 62 are 256 bits, as much as the signature's hash can use (RFC 2104 section 3).
SECRET_CHARACTERS: Final = 43
# Enough to tell two secrets apart, and no help in guessing one.
HINT_CHARACTERS: Final = 4


def new() -> str:
    """A new secret."""
    return PREFIX + installation_keys.random_text(SECRET_CHARACTERS)


def hint(secret: str) -> str:
    """What may be shown of a secret for ever."""
    return f"{PREFIX}…{secret[-HINT_CHARACTERS:]}"


def encrypt(ctx: context.Context, secret: str, *, webhook_id: str) -> bytes:
    """What is stored of a secret."""
    nonce = ctx.entropy(encryption.NONCE_BYTES)
    return encryption.encrypt(ctx.keys.encryption, secret.encode(), owner=_owner(webhook_id), nonce=nonce)


def decrypt(ctx: context.Context, row: webhooks.Secret) -> str:
    """The secret in a row."""
    return encryption.decrypt(ctx.keys.encryption, row.secret, owner=_owner(row.webhook_id)).decode()


def _owner(webhook_id: str) -> str:
    return f"webhook {webhook_id}"
