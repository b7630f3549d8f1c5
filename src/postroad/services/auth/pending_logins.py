"""A login between its password and its second factor: a token in a cookie, for five minutes.

The token is unguessable, the database has its hash, and it works once. It belongs to the login as it was when the
password was checked: a new password ends it.
"""

import hashlib
from typing import Final

import msgspec

from postroad import errors
from postroad.model import times
from postroad.services import context
from postroad.services.auth import installation_keys
from postroad.storage import logins, pending_logins

LIFETIME_SECONDS: Final = 300
# 43 characters of 62 are 256 bits.
TOKEN_CHARACTERS: Final = 43


class PendingLogin(msgspec.Struct, frozen=True):
    """A login, the methods that it has proved, and the hash of the invitation that it wants to accept."""

    login: logins.Login
    methods: str
    invitation: bytes | None


async def begin(ctx: context.Context, login: logins.Login, *, methods: str, invitation: bytes | None = None) -> str:
    """A token for a login that has proved `methods`, such as its password."""
    token = installation_keys.random_text(TOKEN_CHARACTERS)
    expires_at = ctx.clock() + LIFETIME_SECONDS * times.SECOND
    pending = pending_logins.PendingLogin(login.id, login.tokens_valid_from, methods, expires_at, invitation)
    async with ctx.store.transaction() as tx:
        await pending_logins.insert(tx, _hash(token), pending)
    return token


async def find(ctx: context.Context, token: str | None) -> PendingLogin:
    """The login that waits for its second factor."""
    async with ctx.store.reading() as tx:
        found = None if token is None else await pending_logins.find(tx, _hash(token))
        login = None if found is None else await logins.by_id(tx, found.login_id)
    return _current(ctx, found, login)


async def consume(ctx: context.Context, token: str | None) -> PendingLogin:
    """The same, once: its second factor was right."""
    async with ctx.store.transaction() as tx:
        found = None if token is None else await pending_logins.consume(tx, _hash(token))
        login = None if found is None else await logins.by_id(tx, found.login_id)
    return _current(ctx, found, login)


def _current(
    ctx: context.Context, found: pending_logins.PendingLogin | None, login: logins.Login | None
) -> PendingLogin:
    if found is None or login is None or ctx.clock() >= found.expires_at or found.epoch != login.tokens_valid_from:
        raise errors.Unauthorized("this login has expired; log in again")
    return PendingLogin(login, found.methods, found.invitation)


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="replace")).digest()
