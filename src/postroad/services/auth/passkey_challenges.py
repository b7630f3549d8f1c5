"""Challenges that an authenticator is to sign (Web Authentication Level 2, section 13.4.3).

A challenge is random, and is kept in a signed cookie with what it is for: the ceremony, and the session or the pending
login that asked for it. So nothing is stored for somebody who only asks, and an answer that was given in one browser is
worth nothing in another. A challenge that was answered is stored until it expires, so it is answered once, on whichever
host.
"""

import base64
import hashlib
from enum import StrEnum
from typing import Final

import msgspec

from postroad import errors
from postroad.model import times
from postroad.services import context
from postroad.services.auth import signed_values
from postroad.storage import passkeys, store

# Long enough to fetch a security key from another room.
VALID_SECONDS: Final = 300
CHALLENGE_BYTES: Final = 32
_PURPOSE: Final = "passkey"


class Ceremony(StrEnum):
    """What a challenge is for."""

    REGISTER = "register"
    LOG_IN = "log in"
    SECOND_FACTOR = "second factor"
    CONFIRM = "confirm"


class Challenge(msgspec.Struct, frozen=True):
    """A challenge, who asked for it, and until when it is valid, in seconds since 1970.

    `subject` is the id of a session or of a pending login; it is empty for somebody who is not known yet. A passkey
    that is registered gets `user_handle`.
    """

    value: bytes
    ceremony: Ceremony
    subject: str
    until: int
    user_handle: bytes = b""

    @property
    def hash(self) -> bytes:
        """What is stored of it."""
        return hashlib.sha256(self.value).digest()


def new(ctx: context.Context, ceremony: Ceremony, subject: str, *, user_handle: bytes = b"") -> Challenge:
    """A new challenge."""
    until = ctx.clock() // times.SECOND + VALID_SECONDS
    return Challenge(ctx.entropy(CHALLENGE_BYTES), ceremony, subject, until, user_handle)


def write(ctx: context.Context, challenge: Challenge) -> str:
    """The challenge as text for a cookie."""
    return signed_values.write(ctx, challenge, purpose=_PURPOSE)


def read(ctx: context.Context, text: str | None, ceremony: Ceremony, subject: str) -> Challenge:
    """The challenge of a cookie, if it is for this ceremony of this session or pending login."""
    challenge = signed_values.read(ctx, text, Challenge, purpose=_PURPOSE) if text else None
    if challenge is None or (challenge.ceremony, challenge.subject) != (ceremony, subject):
        raise expired()
    if ctx.clock() >= challenge.until * times.SECOND:
        raise expired()
    return challenge


async def use(ctx: context.Context, tx: store.Transaction, challenge: Challenge) -> None:
    """Use a challenge up, with the answer that it got."""
    expires_at = challenge.until * times.SECOND
    if not await passkeys.use_challenge(tx, challenge.hash, expires_at=expires_at, now=ctx.clock()):
        raise expired()


def encode(value: bytes) -> str:
    """Bytes as browsers exchange them: base64url without padding (RFC 4648 section 5)."""
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def expired() -> errors.InvalidRequest:
    """The error for an answer to no challenge of ours."""
    return errors.InvalidRequest("this request for a passkey has expired or was used; try again")
