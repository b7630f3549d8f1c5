"""Links for setting a password: for invited users, and for users who forgot theirs.

A link works once, for a limited time. Its token is unguessable; the database has its hash, and until its mail is sent
the token, encrypted. Wrong links are throttled like failed logins. A newer link, a new password or disabling the user
invalidates a link. Unknown, used and expired links get the same error. The address comes from the configuration, never
from a request's Host.
"""

import base64
import contextlib
import dataclasses
import hashlib
from dataclasses import dataclass, field
from typing import Final

from postroad import config, errors
from postroad.model import actors, login_throttle, times
from postroad.services import audit_log, context
from postroad.services.auth import encryption, installation_keys, password_rules
from postroad.storage import access_version, known_networks, password_links, store, users

# A weekend may lie between an invitation and its use; who asks for a new password waits for it.
INVITATION_HOURS: Final = 72
RESET_HOURS: Final = 24
# 43 characters of 62 are 256 bits.
TOKEN_CHARACTERS: Final = 43


@dataclass(frozen=True, slots=True)
class NewLink:
    """A new link's token, which is shown once, and when it expires."""

    token: str = field(repr=False)
    expires_at: int


async def create(ctx: context.Context, tx: store.Transaction, user: users.User) -> NewLink:
    """Create a link for a user, replacing earlier ones."""
    hours = INVITATION_HOURS if user.joined_at is None else RESET_HOURS
    made = NewLink(installation_keys.random_text(TOKEN_CHARACTERS), ctx.clock() + hours * times.HOUR)
    link = password_links.Link(_hash(made.token), user.account_id, user.id, made.expires_at)
    await password_links.replace(tx, link)
    return made


async def find_user(ctx: context.Context, token: str) -> users.User:
    """The user that a link belongs to. Raises RateLimited when too many were tried from the network of the actor."""
    _refuse_impossible(token)
    counters = login_throttle.of_network(ctx.actor.client_address)
    seconds = await ctx.access_cache.login_failures.attempt(counters, now=ctx.clock())
    if seconds:
        raise errors.RateLimited(f"too many failed attempts; try again in {seconds} seconds", retry_after=seconds)
    async with ctx.store.reading() as tx:
        user = await _person(ctx, tx, await password_links.find(tx, _hash(token)))
    await ctx.access_cache.login_failures.withdraw(counters, now=ctx.clock())
    return user


async def redeem(ctx: context.Context, token: str, *, password: str) -> users.User:
    """Set the password that the user of a link chose. All their sessions end."""
    # Hashing costs time: only a valid link gets that far.
    invited = await find_user(ctx, token)
    password_rules.check_new("password", password, email=invited.email)
    password_hash = await ctx.passwords.hash(password, party=invited.account_id)
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        user = await _person(ctx, tx, await password_links.consume(tx, _hash(token)))
        await users.set_password(tx, user.id, password_hash=password_hash, now=ctx.clock())
        await password_links.remove(tx, user.id)
        network = login_throttle.network_of(ctx.actor.client_address)
        await known_networks.put(tx, user.id, network, now=ctx.clock())
        action = "user.joined" if user.joined_at is None else "user.password_changed"
        await audit_log.write(_acting(ctx, user), tx, user.account_id, action, user.email)
        changed = await users.by_id(tx, user.id)
    ctx.access_cache.invalidate()
    return changed or user


def seal(ctx: context.Context, user_id: str, token: str) -> str:
    """A token as it may be stored until its mail is sent."""
    nonce = ctx.entropy(encryption.NONCE_BYTES)
    sealed = encryption.encrypt(ctx.keys.encryption, token.encode(), owner=user_id, nonce=nonce)
    return base64.b64encode(sealed).decode()


def unseal(ctx: context.Context, user_id: str, sealed: str) -> str:
    """The token, also if the key of the installation was replaced meanwhile."""
    for keys in (ctx.keys, *ctx.keys.previous):
        with contextlib.suppress(encryption.DecryptionError):
            return encryption.decrypt(keys.encryption, base64.b64decode(sealed), owner=user_id).decode()
    raise _not_found()


def url(settings: config.Settings, token: str) -> str:
    """The URL of a link."""
    base = config.public_url(settings) or config.local_url(settings)
    return f"{base.rstrip('/')}/password/{token}"


async def _person(ctx: context.Context, tx: store.Transaction, link: password_links.Link | None) -> users.User:
    user = await users.by_id(tx, link.user_id) if link is not None and ctx.clock() < link.expires_at else None
    if user is None or user.disabled_at is not None:
        raise _not_found()
    return user


def _acting(ctx: context.Context, user: users.User) -> context.Context:
    """The holder of the link acts as its user."""
    return dataclasses.replace(ctx, actor=dataclasses.replace(ctx.actor, kind=actors.Kind.PERSON, user_id=user.id))


def _refuse_impossible(token: str) -> None:
    if len(token) != TOKEN_CHARACTERS or not token.isascii() or not token.isalnum():
        raise _not_found()


def _hash(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _not_found() -> errors.NotFound:
    return errors.NotFound("this link is invalid or has expired; ask an owner of your account for a new one")
