"""Authentication and permissions of callers; login, logout and password changes of users.

An authenticated caller is cached under a digest of its credential, so the hot path costs a dictionary lookup. The
cache is invalidated within half a second of any change, so a revocation reaches every process within one.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final

from postroad import errors
from postroad.model import actors, caller, identifiers, key_limits, login_throttle, times
from postroad.protocol import authorization
from postroad.services import audit_log, context
from postroad.services.auth import last_used, password_checks, password_rules, passwords, schemes, tokens
from postroad.services.auth import users as account_users
from postroad.services.notices import kinds, outbox
from postroad.storage import access_version, accounts, credentials, known_networks, password_links, store, users

_HOW_TO: Final = "send 'Basic' with an SMTP username and password, or 'Bearer' with an API key or a token"


@dataclass(frozen=True, slots=True)
class Session:
    """A logged-in user with the token. `expires_at` is in microseconds."""

    token: str = field(repr=False)
    expires_at: int
    user: users.User
    account: accounts.Account


async def authenticate(ctx: context.Context, authorization_field: str | None, *, client_address: str) -> caller.Caller:
    """The caller of an `Authorization` header."""
    if authorization_field is None:
        raise errors.Unauthorized(f"Authorization: missing; {_HOW_TO}")
    fact = ("caller", ctx.access_cache.digest(authorization_field))
    known: schemes.AuthenticatedCaller | None = ctx.access_cache.get_fresh(fact, now=ctx.clock())
    if known is None:
        try:
            known = await _look_up(ctx, _parse(authorization_field), fact=fact, client_address=client_address)
        except errors.RateLimited:
            # The contract has no other answer for `GET /emails/{id}`.
            raise schemes.wrong_password() from None
    return _admit(ctx, known)


async def authenticate_password(
    ctx: context.Context, username: str, password: str, *, client_address: str
) -> caller.Caller:
    """The caller with this username and password, for interfaces without an `Authorization` header.

    Failures count together with those over HTTP. While throttled, no password is checked, so the error is RateLimited:
    a password that was not checked must not be called wrong.
    """
    fact = ("pair", username, ctx.access_cache.digest(password))
    known: schemes.AuthenticatedCaller | None = ctx.access_cache.get_fresh(fact, now=ctx.clock())
    if known is None:
        presented = authorization.Basic(username, password)
        try:
            known = await _look_up(ctx, presented, fact=fact, client_address=client_address)
        except errors.AccountClosed:
            raise
        except errors.Unauthorized:
            msg = "wrong username or password, or the credential is revoked"
            raise errors.Unauthorized(msg) from None
    return _admit(ctx, known)


async def renew(ctx: context.Context, who: caller.Caller) -> caller.Caller:
    """The caller of an open session, as long as its credential is active; needs no password."""
    if who.credential_id is None:
        raise errors.Unauthorized("log in with a username and password")
    used = (last_used.CREDENTIAL, who.credential_id)
    known: schemes.AuthenticatedCaller | None = ctx.access_cache.get_fresh(used, now=ctx.clock())
    if known is None:
        facts = await ctx.access_cache.refresh(ctx.clock())
        known = facts.get(used)
        if known is None:
            async with ctx.store.reading() as tx:
                credential = await credentials.by_id(tx, who.account_id, who.credential_id)
                account = await accounts.by_id(tx, who.account_id)
            if credential is None or credential.revoked_at is not None:
                raise errors.Unauthorized("the credential is revoked; log in with another one")
            known = facts[used] = schemes.AuthenticatedCaller(schemes.with_limits(who, account), used)
    return _admit(ctx, known)


def _parse(authorization_field: str) -> authorization.Basic | authorization.Bearer:
    try:
        return authorization.parse(authorization_field)
    except authorization.AuthorizationError as problem:
        raise errors.Unauthorized(f"Authorization: {problem}") from None


async def _look_up(
    ctx: context.Context,
    presented: authorization.Basic | authorization.Bearer,
    *,
    fact: Hashable,
    client_address: str,
) -> schemes.AuthenticatedCaller:
    """The caller of a credential, from the refreshed cache or the database."""
    schemes.refuse_malformed(presented)
    facts = await ctx.access_cache.refresh(ctx.clock())
    known: schemes.AuthenticatedCaller | None = facts.get(fact)
    if known is None:
        known = await schemes.authenticate(ctx, presented, client_address=client_address)
        if await ctx.access_cache.refresh(ctx.clock()) is not facts:
            # A password check takes time: what was read before it may have been revoked since.
            return await schemes.authenticate(ctx, presented, client_address=client_address)
        facts[fact] = known
    return known


def _admit(ctx: context.Context, known: schemes.AuthenticatedCaller) -> caller.Caller:
    now = ctx.clock()
    if known.caller.expires_at is not None and known.caller.expires_at <= now:
        if known.caller.key is not None:
            raise errors.Unauthorized("Authorization: the API key has expired; use another one")
        raise tokens.refusal()
    if known.used is not None:
        ctx.access_cache.last_used.note(known.used, now=now)
    return known.caller


def require(
    who: caller.Caller,
    permission: caller.Permission,
    *,
    scope: caller.Scope | None = None,
    client_address: str = "",
) -> None:
    """Refuse a caller without this permission, or a key without this scope: unauthorized; by role: forbidden.

    A key with networks is refused elsewhere.
    """
    if who.key is not None and not key_limits.permits_address(who.key.limits, client_address):
        # Reading a message has no other refusal in the contract.
        refusal = errors.Unauthorized if permission is caller.Permission.READ else errors.Forbidden
        raise refusal(f"Authorization: this API key may not be used from {client_address or 'an unknown address'}")
    if permission in who.permissions or (who.key is not None and scope in who.key.scopes):
        return
    if who.scheme is caller.Scheme.TOKEN and permission is caller.Permission.OPERATE:
        raise errors.Forbidden("only operators of this installation may do this")
    if who.scheme is caller.Scheme.TOKEN:
        raise errors.Forbidden("your role in this account does not permit this; ask an owner")
    if permission in caller.PASSWORD_PERMISSIONS:
        raise errors.Unauthorized(
            f"Authorization: this API key does not have the scope '{permission}'; use an SMTP username and password, "
            "a token, or a key that has it"
        )
    if who.key is None or scope is None:
        raise _needs_token()
    raise errors.Unauthorized(
        f"Authorization: this API key does not have the scope '{scope}'; use a key that has it, or a login token from "
        "/v1/auth/login"
    )


async def log_in(
    ctx: context.Context, email: str, password: str, *, client_address: str, request_id: str = ""
) -> Session:
    """Start a session for a user. An unknown email and a wrong password get the same response in the same time."""
    passwords.refuse_impossible("password", password)
    name = account_users.email_key(email)
    async with ctx.store.reading() as tx:
        found = await users.by_email(tx, name) if name is not None else None
        is_known = await _is_known(tx, found, client_address)
    # An invited user has no password yet.
    user = found if found is not None and found.disabled_at is None and found.joined_at is not None else None
    is_right = await password_checks.check_user_password(
        ctx,
        name or "",
        password,
        password_hash=user.password_hash if user else None,
        client_address=client_address,
        is_known=is_known,
    )
    actor = actors.Actor(actors.Kind.PERSON, None, request_id, client_address)
    if user is None or not is_right:
        _audit_failure(dataclasses.replace(ctx, actor=actor), found)
        raise errors.Unauthorized("wrong email or password")
    acting = dataclasses.replace(ctx, actor=dataclasses.replace(actor, user_id=user.id))
    await _record_login(acting, user, is_known=is_known)
    return await issue_token(ctx, user)


async def _is_known(tx: store.Transaction, user: users.User | None, client_address: str) -> bool:
    """Whether the user logged in from this network before; an unknown user takes the same time."""
    return await known_networks.is_known(tx, user.id if user else "", login_throttle.network_of(client_address))


async def issue_token(ctx: context.Context, user: users.User) -> Session:
    """A new token for a user, whose password the caller has checked."""
    async with ctx.store.reading() as tx:
        account = await accounts.by_id(tx, user.account_id)
    if account is None:
        raise errors.NotFound("the account does not exist")
    if account.closed_at is not None:
        raise errors.AccountClosed(schemes.CLOSED)
    now = ctx.clock()
    claims = tokens.claims_for(
        user,
        now=now,
        seconds=ctx.settings.security.token_seconds,
        token_id=ctx.new_id(identifiers.TOKEN, now=now),
    )
    return Session(tokens.sign(claims, ctx.keys.token), claims.expires_at, user, account)


async def _record_login(ctx: context.Context, user: users.User, *, is_known: bool) -> None:
    """Record the time and the network of a login. Logging in to read works while the database is read-only.

    The user hears of a network that is new to them, unless it is near a known one, or all are new.
    """
    network = login_throttle.network_of(ctx.actor.client_address)
    with contextlib.suppress(*store.UNAVAILABLE):
        async with ctx.store.transaction() as tx:
            known = [] if is_known else await known_networks.of_owner(tx, user.id)
            await users.note_login(tx, user.id, now=ctx.clock())
            await known_networks.put(tx, user.id, network, now=ctx.clock())
            await audit_log.write(ctx, tx, user.account_id, "user.logged_in", user.email)
            if known and not login_throttle.is_near(ctx.actor.client_address, known):
                await outbox.write(tx, [_new_network(ctx, user, network)], now=ctx.clock(), entropy=ctx.entropy)


def _new_network(ctx: context.Context, user: users.User, network: str) -> outbox.NewNotice:
    return outbox.NewNotice(
        kind=kinds.NEW_NETWORK,
        subject=f"{user.id} {network}",
        values={"email": user.email, "address": ctx.actor.client_address, "at": times.to_wire(ctx.clock())},
        account_id=user.account_id,
        user_id=user.id,
    )


def _audit_failure(ctx: context.Context, user: users.User | None) -> None:
    """Record a failed login of a user, after the response: its time must not reveal whether the user exists."""
    if user is not None:
        with contextlib.suppress(errors.ServiceUnavailable):
            ctx.access_cache.password_checks.start(object(), functools.partial(_write_failure, ctx, user))


async def _write_failure(ctx: context.Context, user: users.User) -> None:
    if await ctx.access_cache.login_failures.attempt(login_throttle.of_audit(user.id), now=ctx.clock()):
        return
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, user.account_id, "user.login_failed", user.email)


async def issue_api_token(ctx: context.Context, user: users.User) -> Session:
    """A new API token for a logged-in user; it is recorded in the audit log."""
    session = await issue_token(ctx, user)
    async with ctx.store.transaction() as tx:
        await audit_log.write(ctx, tx, user.account_id, "user.token_made", user.email)
    return session


async def log_out(ctx: context.Context, who: caller.Caller) -> None:
    """Revoke the caller's token in every process."""
    if who.token_id is None or who.expires_at is None:
        raise _needs_token()
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        await users.revoke_token(tx, who.token_id, account_id=who.account_id, expires_at=who.expires_at)
    ctx.access_cache.invalidate()


async def change_password(
    ctx: context.Context, who: caller.Caller, *, current_password: str, new_password: str, client_address: str
) -> Session:
    """Change a user's password. All earlier tokens are revoked; the returned session is new."""
    passwords.refuse_impossible("current_password", current_password)
    passwords.refuse_impossible("new_password", new_password)
    user, _ = await me(ctx, who)
    async with ctx.store.reading() as tx:
        is_known = await _is_known(tx, user, client_address)
    is_right = await password_checks.check_user_password(
        ctx,
        account_users.email_key(user.email) or "",
        current_password,
        password_hash=user.password_hash,
        client_address=client_address,
        is_known=is_known,
    )
    if not is_right:
        _audit_failure(ctx, user)
        raise errors.Unauthorized("current_password: wrong")
    password_rules.check_new("new_password", new_password, email=user.email)
    new_hash = await ctx.passwords.hash(new_password, party=user.account_id)
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        replaced = await users.replace_password(
            tx, user.id, old_hash=user.password_hash, new_hash=new_hash, now=ctx.clock()
        )
        changed = await users.by_id(tx, user.id)
        if not replaced or changed is None:
            raise errors.Conflict("current_password: was changed by another request at the same time")
        await password_links.remove(tx, user.id)
        await audit_log.write(ctx, tx, user.account_id, "user.password_changed", user.email)
    ctx.access_cache.invalidate()
    return await issue_token(ctx, changed)


async def me(ctx: context.Context, who: caller.Caller) -> tuple[users.User, accounts.Account]:
    """The user and the account of a token."""
    async with ctx.store.reading() as tx:
        user = await users.by_id(tx, who.user_id) if who.user_id is not None else None
        account = await accounts.by_id(tx, who.account_id)
    if user is None or account is None:
        raise _needs_token()
    return user, account


def _needs_token() -> errors.Unauthorized:
    return errors.Unauthorized(
        "Authorization: requires a login token from /v1/auth/login, sent as 'Bearer'; programs send with POST /emails"
    )
