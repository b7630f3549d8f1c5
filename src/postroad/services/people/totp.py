"""Authenticator apps: time-based codes (RFC 6238) with SHA-1, six digits and steps of 30 seconds, as apps expect.

A code is accepted one step early or late, for clocks that differ and people who type (section 5.2), and only once: the
step of the last accepted code is stored, and only later ones are accepted after it. The secret is encrypted with the
installation key.
"""

import base64
import hmac
from typing import Final

import pyotp

from postroad import context
from postroad.keys import encryption
from postroad.model.units import times
from postroad.storage.engine import store
from postroad.storage.people import second_factors

# RFC 4226 section 4, R6.
SECRET_BYTES: Final = 20
DIGITS: Final = 6
STEP: Final = 30 * times.SECOND
DRIFT_STEPS: Final = 1
ISSUER: Final = "Postroad"
# Whoever begins to set up an app finishes it; a secret that was seen by others is not left to be confirmed later.
SET_UP: Final = times.HOUR


def is_code(text: str) -> bool:
    """Whether a text looks like a code."""
    return len(text) == DIGITS and text.isascii() and text.isdigit()


def matching_step(secret: str, code: str, *, now: int, after: int) -> int | None:
    """The step that a code is of, among those around now and after the last one that was used."""
    generator, found = pyotp.HOTP(secret, digits=DIGITS), None
    # All of them, whichever matches: the time tells nothing.
    for step in range(now // STEP - DRIFT_STEPS, now // STEP + DRIFT_STEPS + 1):
        if hmac.compare_digest(generator.at(step).encode(), code.encode()) and step > after:
            found = step
    return found


def uri(secret: str, *, email: str) -> str:
    """What an authenticator app reads from a QR code."""
    return pyotp.TOTP(secret, digits=DIGITS).provisioning_uri(email, issuer_name=ISSUER)


async def begin(ctx: context.Context, tx: store.Transaction, login_id: str) -> bool:
    """Store a new secret for a login, which is no factor until `confirm`; False if it has an authenticator app."""
    secret = base64.b32encode(ctx.entropy(SECRET_BYTES))
    nonce = ctx.entropy(encryption.NONCE_BYTES)
    sealed = encryption.encrypt(ctx.keys.encryption, secret, owner=encryption.totp_owner(login_id), nonce=nonce)
    return await second_factors.put_totp(tx, login_id, sealed, now=ctx.clock())


async def unconfirmed(ctx: context.Context, tx: store.Transaction, login_id: str) -> str | None:
    """The secret that waits for its first code."""
    found = await second_factors.totp(tx, login_id)
    return None if found is None or found.confirmed_at is not None else _secret(ctx, login_id, found)


async def confirm(ctx: context.Context, tx: store.Transaction, login_id: str, code: str) -> bool:
    """Make the secret a factor, if the code is one of it."""
    found = await second_factors.totp(tx, login_id)
    if found is None or found.confirmed_at is not None or ctx.clock() - found.created_at >= SET_UP:
        return False
    step = matching_step(_secret(ctx, login_id, found), code, now=ctx.clock(), after=0)
    return step is not None and await second_factors.confirm_totp(
        tx, login_id, secret=found.secret, step=step, now=ctx.clock()
    )


async def use(ctx: context.Context, tx: store.Transaction, login_id: str, code: str) -> bool:
    """Use up a code; False if it is wrong or was used."""
    found = await second_factors.totp(tx, login_id)
    if found is None or found.confirmed_at is None:
        return False
    step = matching_step(_secret(ctx, login_id, found), code, now=ctx.clock(), after=found.last_step)
    return step is not None and await second_factors.use_step(tx, login_id, step)


def _secret(ctx: context.Context, login_id: str, found: second_factors.Totp) -> str:
    return encryption.decrypt(ctx.keys.encryption, found.secret, owner=encryption.totp_owner(login_id)).decode()
