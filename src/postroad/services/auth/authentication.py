"""Authentication and permissions of callers; login, logout and password changes of users.

An authenticated caller is cached under a digest of its credential, so the hot path costs a dictionary lookup. The
cache is invalidated within half a second of any change, so a revocation reaches every process within one.
"""

from collections.abc import Hashable
from typing import Final

from postroad import errors
from postroad.model import caller, key_limits
from postroad.protocol import authorization
from postroad.services import context
from postroad.services.auth import last_used, login, password_rules, passwords, schemes, second_factors, tokens
from postroad.services.auth import logins as auth_logins
from postroad.services.auth import sessions as auth_sessions
from postroad.storage import access_version, accounts, credentials, logins, sessions, users

# How a person proved who they are.
PASSWORD: Final = "password"  # noqa: S105 - the name of a method
OPERATOR: Final = "operator"
_HOW_TO: Final = "send 'Basic' with an SMTP username and password, or 'Bearer' with an API key or a token"


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
        except (errors.AccountClosed, errors.CreatorDisabled):
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
            if credential.disabled_at is not None:
                raise schemes.creator_disabled("SMTP credential")
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
    ctx: context.Context,
    email: str,
    password: str,
    *,
    client_address: str,
    request_id: str = "",
    kind: sessions.Kind = sessions.Kind.TOKEN,
    device: str = "",
    account_id: str | None = None,
    code: str | None = None,
) -> login.LoggedIn:
    """Start a session. An unknown email and a wrong password get the same response in the same time.

    A login with a second factor needs its code.
    """
    acting = login.acting(ctx, client_address=client_address, request_id=request_id)
    found = await login.check_password(acting, email, password)
    methods = PASSWORD
    if (await second_factors.of_login(ctx, found.id)).exist:
        if code is None:
            raise second_factors.required()
        methods = f"{PASSWORD} {await second_factors.check_code(acting, found, code)}"
    return await login.finish(acting, found, methods=methods, kind=kind, device=device, account_id=account_id)


async def issue_token(ctx: context.Context, user: users.User, *, methods: str = OPERATOR) -> login.LoggedIn:
    """A new API token for a user, for whom the caller may act."""
    async with ctx.store.transaction() as tx:
        account = await accounts.by_id(tx, user.account_id)
        if account is None:
            raise errors.NotFound("the account does not exist")
        if account.closed_at is not None:
            raise errors.AccountClosed(schemes.CLOSED)
        begun = await auth_sessions.begin(ctx, tx, user, methods=methods, kind=sessions.Kind.TOKEN)
    return login.LoggedIn(begun, user, account)


async def log_out(ctx: context.Context, who: caller.Caller) -> None:
    """End the session of the caller's token in every process."""
    if who.token_id is None:
        raise _needs_token()
    await auth_sessions.end(ctx, who.token_id)


async def change_password(
    ctx: context.Context,
    who: caller.Caller,
    *,
    current_password: str,
    new_password: str,
    kind: sessions.Kind = sessions.Kind.TOKEN,
    device: str = "",
) -> login.LoggedIn:
    """Change a person's password, in all their accounts. All earlier sessions end; the returned one is new."""
    passwords.refuse_impossible("current_password", current_password)
    passwords.refuse_impossible("new_password", new_password)
    user, account = await me(ctx, who)
    async with ctx.store.reading() as tx:
        found = await logins.by_id(tx, user.login_id) if user.login_id is not None else None
    if found is None:
        raise _needs_token()
    if not await login.check_own_password(ctx, found, current_password):
        login.audit_failure(ctx, [user])
        raise errors.Unauthorized("current_password: wrong")
    password_rules.check_new("new_password", new_password, email=user.email)
    new_hash = await auth_logins.hash_password(ctx, new_password, email=found.email, party=user.account_id)
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        now = ctx.clock()
        old_hash = found.password_hash or ""
        if not await logins.replace_password(tx, found.id, old_hash=old_hash, new_hash=new_hash, now=now):
            raise errors.Conflict("current_password: was changed by another request at the same time")
        before = await sessions.by_id(tx, who.token_id or "")
        await auth_logins.after_change(ctx, tx, found.id)
        changed = await users.by_id(tx, user.id) or user
        methods = before.methods if before is not None else PASSWORD
        begun = await auth_sessions.begin(ctx, tx, changed, methods=methods, kind=kind, device=device)
    ctx.access_cache.invalidate()
    return login.LoggedIn(begun, changed, account)


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
