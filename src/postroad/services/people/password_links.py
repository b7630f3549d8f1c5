"""Links for setting a password: for invited users, and for users who forgot theirs.

A link works once, for a limited time. Its token is unguessable; the database has its hash, and until its mail is sent
the token, encrypted. Wrong links are throttled like failed logins. A newer link, a new password or disabling the user
invalidates a link. Unknown, used and expired links get the same error. The address comes from the configuration, never
from a request's Host.
"""

import base64
import contextlib
from dataclasses import dataclass, field
from typing import Final

from postroad import config, context, errors
from postroad.keys import encryption
from postroad.model.people import callers, login_rules
from postroad.model.units import times
from postroad.services import audit_log
from postroad.services.people import logins, passwords, second_factors, tokens
from postroad.storage.engine import store
from postroad.storage.people import accounts, credentials, sessions, sso, users

# A weekend may lie between an invitation and its use; who asks for a new password waits for it.
INVITATION_HOURS: Final = 72
RESET_HOURS: Final = 24


@dataclass(frozen=True, slots=True)
class NewLink:
    """A new link's token, which is shown once, and when it expires."""

    token: str = field(repr=False)
    expires_at: int


class FactorNeeded(errors.SecondFactorRequired):
    """Somebody who is invited has typed the password of a login that has a second factor, which is needed to join."""

    def __init__(self, own: users.Login, invitation: bytes) -> None:
        super().__init__("a second factor is required")
        self.login = own
        self.invitation = invitation


async def create(
    ctx: context.Context, tx: store.Transaction, user: users.User, *, is_recovery: bool = False
) -> NewLink:
    """Create a link for a user, replacing earlier ones; one for recovery also removes second factors."""
    hours = INVITATION_HOURS if user.joined_at is None else RESET_HOURS
    made = NewLink(tokens.new_secret(), ctx.clock() + hours * times.HOUR)
    by_operator = int(ctx.actor.kind is callers.ActorKind.OPERATOR)
    link = sessions.PasswordLink(
        tokens.hash_secret(made.token), user.account_id, user.id, made.expires_at, by_operator, int(is_recovery)
    )
    await sessions.replace_link(tx, link)
    return made


async def find_user(ctx: context.Context, token: str) -> users.User:
    """The user that a link belongs to. Raises RateLimited when too many were tried from the network of the actor."""
    if len(token) != tokens.SECRET_CHARACTERS or not token.isascii() or not token.isalnum():
        raise _not_found()
    counters = login_rules.of_network(ctx.actor.client_address)
    await ctx.access_cache.login_failures.check(counters, now=ctx.clock())
    async with ctx.store.reading() as tx:
        user = await _person(ctx, tx, await sessions.find_link(tx, tokens.hash_secret(token)))
    await ctx.access_cache.login_failures.withdraw(counters, now=ctx.clock())
    return user


async def redeem(ctx: context.Context, token: str, *, password: str) -> users.User:
    """Set the password that the user of a link chose; their sessions end.

    Somebody who is invited may type the password of a login that they have: then they join with that one. The link of
    an owner never changes a login that other accounts use, too: the user gets one of their own.
    """
    # Checking and hashing cost time: only a valid link gets that far.
    invited = await find_user(ctx, token)
    own = await logins.find_for_invitation(ctx, invited.email, password) if invited.joined_at is None else None
    if own is not None and (await second_factors.of_login(ctx, own.id)).exist:
        raise FactorNeeded(own, tokens.hash_secret(token))
    password_hash = ""
    if own is None:
        passwords.check_new("password", password, email=invited.email)
        password_hash = await logins.hash_password(ctx, password, email=invited.email, party=invited.account_id)
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        link = await sessions.consume_link(tx, tokens.hash_secret(token))
        user = await _person(ctx, tx, link)
        acting = context.as_person(ctx, user.id)
        await sessions.remove_link(tx, user.id)
        if user.login_id is None:
            await _join(acting, tx, user, own, password_hash=password_hash)
            await audit_log.write(acting, tx, user.account_id, "user.joined", user.email)
        elif link is not None and not link.by_operator and await logins.is_shared(tx, user):
            await logins.give_new(acting, tx, user, password_hash=password_hash)
            await audit_log.write(acting, tx, user.account_id, "user.password_changed", user.email)
        else:
            await logins.set_password(acting, tx, user, password_hash=password_hash)
            if link is not None and link.is_recovery:
                await second_factors.remove_all(acting, tx, user.login_id)
        changed = await users.by_id(tx, user.id)
    ctx.access_cache.invalidate()
    return changed or user


async def join(ctx: context.Context, invitation: bytes, own: users.Login) -> users.User:
    """Accept an invitation with a login that has proved its second factor, too."""
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        user = await _person(ctx, tx, await sessions.consume_link(tx, invitation))
        if user.login_id is not None:
            raise _not_found()
        acting = context.as_person(ctx, user.id)
        await _join(acting, tx, user, own, password_hash="")
        await audit_log.write(acting, tx, user.account_id, "user.joined", user.email)
    ctx.access_cache.invalidate()
    return user


async def _join(
    ctx: context.Context, tx: store.Transaction, user: users.User, own: users.Login | None, *, password_hash: str
) -> None:
    if own is None:
        await logins.give_new(ctx, tx, user, password_hash=password_hash)
    elif await users.lock_login(tx, own) and not await sso.is_of_account(tx, own.id):
        await logins.give(ctx, tx, user, login_id=own.id)
    else:
        raise errors.Conflict("password: was changed at the same time; try again")


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
    return f"{config.base_url(settings)}/password/{token}"


async def _person(ctx: context.Context, tx: store.Transaction, link: sessions.PasswordLink | None) -> users.User:
    user = await users.by_id(tx, link.user_id) if link is not None and ctx.clock() < link.expires_at else None
    account = await accounts.by_id(tx, user.account_id) if user is not None else None
    if user is None or user.disabled_at is not None or account is None or account.closed_at is not None:
        raise _not_found()
    return user


def _not_found() -> errors.NotFound:
    return errors.NotFound("this link is invalid or has expired; ask an owner of your account for a new one")
