"""Signing secrets of webhooks: unguessable, shown once, and of no use to who has the database."""

import msgspec
import pytest

from postroad import context
from postroad.keys import encryption
from postroad.services.webhooks import signed_requests
from postroad.storage.mail import webhooks


def stored(secret: bytes, *, webhook_id: str = "whk_1") -> webhooks.Secret:
    return webhooks.Secret("acc_1", webhook_id, 1, secret, 0, None)


def test_a_secret_is_new_every_time_and_says_what_it_is() -> None:
    made = {signed_requests.new_secret() for _ in range(100)}
    assert len(made) == 100
    assert {(secret[:6], len(secret), secret[6:].isalnum()) for secret in made} == {("whsec_", 50, True)}


def test_a_hint_shows_the_end_only() -> None:
    assert signed_requests.secret_hint("whsec_abcdefghijkl") == "whsec_…ijkl"


async def test_a_sealed_secret_opens_for_its_endpoint_alone(ctx: context.Context) -> None:
    secret = signed_requests.new_secret()
    sealed = signed_requests.encrypt_secret(ctx, secret, webhook_id="whk_1")
    assert secret[6:].encode() not in sealed
    assert signed_requests.decrypt_secret(ctx, stored(sealed)) == secret
    assert signed_requests.encrypt_secret(ctx, secret, webhook_id="whk_1") != sealed
    with pytest.raises(encryption.DecryptionError):
        signed_requests.decrypt_secret(ctx, stored(sealed, webhook_id="whk_2"))
    changed = msgspec.structs.replace(stored(sealed), secret=sealed[:-1] + bytes([sealed[-1] ^ 1]))
    with pytest.raises(encryption.DecryptionError):
        signed_requests.decrypt_secret(ctx, changed)
