"""Authentication and permissions of callers; login, logout and password changes of users.

An authenticated caller is cached under a digest of its credential, so the hot path costs a dictionary lookup. The
cache is invalidated within half a second of any change, so a revocation reaches every process within one.
"""

import math
from collections.abc import Callable, Hashable
from typing import Final

from postroad import context, errors
from postroad.mail.accept import send_limits
from postroad.model.delivery import throttle
from postroad.model.people import callers
from postroad.model.units import times
from postroad.protocol.text import http_values
from postroad.services.people import access_cache, logins, passwords, schemes, second_factors, tokens
from postroad.services.people import sessions as auth_sessions
from postroad.storage.people import accounts, credentials, sessions, users

# How a person proved who they are.
PASSWORD: Final = "password"  # noqa: S105 - the name of a method
OPERATOR: Final = "operator"
_HOW_TO: Final = "send 'Basic' with an SMTP username and password, or 'Bearer' with an API key or a token"


async def authenticate(ctx: context.Context, authorization_field: str | None, *, client_address: str) -> callers.Caller:
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
) -> callers.Caller:
    """The caller with this username and password, for interfaces without an `Authorization` header.

    Failures count together with those over HTTP. While throttled, no password is checked, so the error is RateLimited:
    a password that was not checked must not be called wrong.
    """
    fact = ("pair", username, ctx.access_cache.digest(password))
    known: schemes.AuthenticatedCaller | None = ctx.access_cache.get_fresh(fact, now=ctx.clock())
    if known is None:
        presented = http_values.Basic(username, password)
        try:
            known = await _look_up(ctx, presented, fact=fact, client_address=client_address)
        except (errors.AccountClosed, errors.CreatorDisabled):
            raise
        except errors.Unauthorized:
            msg = "wrong username or password, or the credential is revoked"
            raise errors.Unauthorized(msg) from None
    return _admit(ctx, known)


async def renew(ctx: context.Context, who: callers.Caller) -> callers.Caller:
    """The caller of an open session, as long as its credential is active; needs no password."""
    if who.credential_id is None:
        raise errors.Unauthorized("log in with a username and password")
    used = (access_cache.USED_CREDENTIAL, who.credential_id)
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


def _parse(authorization_field: str) -> http_values.Basic | http_values.Bearer:
    try:
        return http_values.parse_authorization(authorization_field)
    except http_values.AuthorizationError as problem:
        raise errors.Unauthorized(f"Authorization: {problem}") from None


async def _look_up(
    ctx: context.Context,
    presented: http_values.Basic | http_values.Bearer,
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


def _admit(ctx: context.Context, known: schemes.AuthenticatedCaller) -> callers.Caller:
    now = ctx.clock()
    if known.caller.expires_at is not None and known.caller.expires_at <= now:
        if known.caller.key is not None:
            raise errors.Unauthorized("Authorization: the API key has expired; use another one")
        raise tokens.refusal()
    if known.used is not None:
        ctx.access_cache.last_used.note(known.used, now=now)
    return known.caller


def require(
    who: callers.Caller,
    permission: callers.Permission,
    *,
    scope: callers.Scope | None = None,
    client_address: str = "",
) -> None:
    """Refuse a caller without this permission, or a key without this scope: unauthorized; by role: forbidden.

    A key with networks is refused elsewhere.
    """
    if who.key is not None and not callers.permits_address(who.key.limits, client_address):
        # Reading a message has no other refusal in the contract.
        refusal = errors.Unauthorized if permission is callers.Permission.READ else errors.Forbidden
        raise refusal(f"Authorization: this API key may not be used from {client_address or 'an unknown address'}")
    if permission in who.permissions or (who.key is not None and scope in who.key.scopes):
        return
    if who.scheme is callers.Scheme.TOKEN and permission is callers.Permission.OPERATE:
        raise errors.Forbidden("only operators of this installation may do this")
    if who.scheme is callers.Scheme.TOKEN:
        raise errors.Forbidden("your role in this account does not permit this; ask an owner")
    if permission in callers.PASSWORD_PERMISSIONS:
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
) -> logins.LoggedIn:
    """Start a session. An unknown email and a wrong password get the same response in the same time.

    A login with a second factor needs its code.
    """
    acting = logins.acting(ctx, client_address=client_address, request_id=request_id)
    found = await logins.check_password(acting, email, password)
    methods = PASSWORD
    if (await second_factors.of_login(ctx, found.id)).exist:
        if code is None:
            raise second_factors.required()
        methods = f"{PASSWORD} {await second_factors.check_code(acting, found, code)}"
    return await logins.finish(acting, found, methods=methods, kind=kind, device=device, account_id=account_id)


async def issue_token(ctx: context.Context, user: users.User, *, methods: str = OPERATOR) -> logins.LoggedIn:
    """A new API token for a user, for whom the caller may act."""
    async with ctx.store.transaction() as tx:
        account = await accounts.by_id(tx, user.account_id)
        if account is None:
            raise errors.NotFound("the account does not exist")
        if account.closed_at is not None:
            raise errors.AccountClosed(schemes.CLOSED)
        begun = await auth_sessions.begin(ctx, tx, user, methods=methods, kind=sessions.Kind.TOKEN)
    return logins.LoggedIn(begun, user, account)


async def log_out(ctx: context.Context, who: callers.Caller) -> None:
    """End the session of the caller's token in every process."""
    if who.token_id is None:
        raise _needs_token()
    await auth_sessions.end(ctx, who.token_id)


async def change_password(
    ctx: context.Context,
    who: callers.Caller,
    *,
    current_password: str,
    new_password: str,
    kind: sessions.Kind = sessions.Kind.TOKEN,
    device: str = "",
) -> logins.LoggedIn:
    """Change a person's password, in all their accounts. All earlier sessions end; the returned one is new."""
    passwords.refuse_impossible("current_password", current_password)
    passwords.refuse_impossible("new_password", new_password)
    user, account = await me(ctx, who)
    async with ctx.store.reading() as tx:
        found = await users.login_by_id(tx, user.login_id) if user.login_id is not None else None
    if found is None:
        raise _needs_token()
    if not await logins.check_own_password(ctx, found, current_password):
        logins.audit_failure(ctx, [user])
        raise errors.Unauthorized("current_password: incorrect")
    passwords.check_new("new_password", new_password, email=user.email)
    new_hash = await logins.hash_password(ctx, new_password, email=found.email, party=user.account_id)
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        now = ctx.clock()
        old_hash = found.password_hash or ""
        if not await users.replace_password(tx, found.id, old_hash=old_hash, new_hash=new_hash, now=now):
            raise errors.Conflict("current_password: was changed by another request at the same time")
        before = await sessions.by_id(tx, who.token_id or "")
        await logins.after_change(ctx, tx, found.id)
        changed = await users.by_id(tx, user.id) or user
        methods = before.methods if before is not None else PASSWORD
        begun = await auth_sessions.begin(ctx, tx, changed, methods=methods, kind=kind, device=device)
    ctx.access_cache.invalidate()
    return logins.LoggedIn(begun, changed, account)


async def me(ctx: context.Context, who: callers.Caller) -> tuple[users.User, accounts.Account]:
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


# The rate of management requests: one token bucket per account, and one of half its size per user or API key.
#
# So one program cannot use up what the account's other users need. Sending and reading mail have limits of their own
# (`acceptance/rate_limit.py`). The buckets are in memory, so each process counts separately: what they protect is the
# processor and the database of a host, and exactness over all processes is not worth a write per request.

USERS_PART: Final = 2


class ManagementRate:
    def __init__(self, policy: throttle.RateLimit, *, clock: Callable[[], int]) -> None:
        part = throttle.RateLimit(rate=math.ceil(policy.rate / USERS_PART), burst=math.ceil(policy.burst / USERS_PART))
        self._of_user = send_limits.RateLimiter(part, refuse=_rate_refusal)
        self._of_account = send_limits.RateLimiter(policy, refuse=_rate_refusal)
        self._clock = clock

    def require(
        self,
        who: callers.Caller,
        permission: callers.Permission,
        *,
        scope: callers.Scope | None = None,
        client_address: str = "",
    ) -> None:
        """Refuse a caller without this permission, and one that manages too fast."""
        require(who, permission, scope=scope, client_address=client_address)
        if permission not in callers.PASSWORD_PERMISSIONS:
            now = self._clock()
            self._of_user.take(who.user_id or (who.key.id if who.key else ""), now=now)
            self._of_account.take(who.account_id, now=now)


def _rate_refusal(policy: throttle.RateLimit, decision: throttle.RateDecision) -> errors.RateLimited:
    seconds = max(1, math.ceil(decision.wait / times.SECOND))
    return errors.RateLimited(f"too many management requests: more than {policy.rate} per second", retry_after=seconds)
