"""Authentication and permissions of callers; login, logout and password changes of users.

An authenticated caller is cached under a digest of its credential, so the hot path costs a dictionary lookup. The
cache is invalidated within half a second of any change, so a revocation reaches every process within one.
"""

import contextlib
import dataclasses
import functools
import math
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

import msgspec

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.mail.accept import send_limits
from postroad.model.delivery import throttle
from postroad.model.people import callers, login_rules
from postroad.model.units import times
from postroad.protocol.text import http_values
from postroad.services.people import last_used, passwords, second_factors, tokens
from postroad.services.people import sso_connections as sso_rules
from postroad.storage.engine import store
from postroad.storage.people import accounts, credentials, rates, sessions, users
from postroad.storage.people import second_factors as stored_factors

# Generated usernames are much shorter; a longer or unprintable one is unknown without a query.
USERNAME_CHARACTERS: Final = 64
_OPERATING: Final = frozenset({callers.Scope.OPERATOR})
CLOSED: Final = "the account is closed; contact the operator of this service"
# A login from a known network is recorded again only after this time: a busy application writes nothing.
NETWORK_RENEWAL: Final = times.DAY


class AuthenticatedCaller(msgspec.Struct, frozen=True):
    """A caller, the secret whose use is recorded, and the session of a person.

    Somebody who lacks a second factor that is required has to set it up first.
    """

    caller: callers.Caller
    used: last_used.UsedSecret | None = None
    session: sessions.Session | None = None
    lacks_factor: bool = False


def refuse_malformed(presented: http_values.Basic | http_values.Bearer) -> None:
    """Refuse a malformed credential without a query."""
    match presented:
        case http_values.Bearer(token) if token.startswith(installation_keys.API_KEY_PREFIXES):
            if not installation_keys.is_api_key(token):
                raise errors.Unauthorized("Authorization: the API key is mistyped or truncated; its checksum is wrong")
        # The key of another service, after a move that changed only the base URL.
        case http_values.Bearer(token) if not tokens.has_form(token):
            raise errors.Unauthorized(
                "Authorization: this is not an API key of Postroad, which begins with pr_live_ or pr_test_, nor a token"
            )
        case http_values.Basic(username) if len(username) > USERNAME_CHARACTERS or not username.isprintable():
            raise wrong_password()


async def identify(
    ctx: context.Context, presented: http_values.Basic | http_values.Bearer, *, client_address: str
) -> AuthenticatedCaller:
    match presented:
        case http_values.Basic():
            return await _of_open_account(ctx, await _by_password(ctx, presented, client_address=client_address))
        case http_values.Bearer(token) if token.startswith(installation_keys.API_KEY_PREFIXES):
            return await _of_open_account(ctx, await _by_api_key(ctx, token))
        case http_values.Bearer(token):
            return await _by_token(ctx, token)


async def _of_open_account(ctx: context.Context, known: AuthenticatedCaller) -> AuthenticatedCaller:
    """The caller with the limits of its account, unless that is closed."""
    async with ctx.store.looking_up() as tx:
        account = await accounts.by_id(tx, known.caller.account_id)
    if account is not None and account.closed_at is not None:
        raise errors.AccountClosed(CLOSED)
    return msgspec.structs.replace(known, caller=with_limits(known.caller, account))


def with_limits(who: callers.Caller, account: accounts.Account | None) -> callers.Caller:
    rate = None if account is None else account.request_rate
    return who if rate == who.request_rate else dataclasses.replace(who, request_rate=rate)


async def _by_password(
    ctx: context.Context, presented: http_values.Basic, *, client_address: str
) -> AuthenticatedCaller:
    network = login_rules.network_of(client_address)
    async with ctx.store.reading() as tx:
        found = await credentials.by_username(tx, presented.username)
        live = found if found is not None and found.revoked_at is None else None
        # An unknown name takes the same time.
        last_login = await rates.last_login(tx, live.id if live else "", network)
    is_right = await passwords.check_credential_password(
        ctx,
        presented.username,
        presented.password,
        password_hash=live.password_hash if live else None,
        client_address=client_address,
        is_known=last_login is not None,
    )
    if live is None or not is_right:
        raise wrong_password()
    if live.disabled_at is not None:
        raise creator_disabled("SMTP credential")
    if last_login is None or ctx.clock() - last_login >= NETWORK_RENEWAL:
        record = functools.partial(_record_network, ctx, live.id, network)
        # An application that opens many connections writes once. While the store cannot be written, it still gets in.
        with contextlib.suppress(*store.UNAVAILABLE):
            await ctx.access_cache.password_checks.join((live.id, network), record, party=network)
    who = callers.Caller(live.account_id, live.id, callers.Scheme.PASSWORD, callers.PASSWORD_PERMISSIONS)
    return AuthenticatedCaller(who, (last_used.CREDENTIAL, live.id))


async def _record_network(ctx: context.Context, credential_id: str, network: str) -> None:
    async with ctx.store.transaction() as tx:
        await rates.put_network(tx, credential_id, network, now=ctx.clock(), max_networks=rates.MAX_CREDENTIAL_NETWORKS)


async def _by_api_key(ctx: context.Context, token: str) -> AuthenticatedCaller:
    async with ctx.store.looking_up() as tx:
        key = await credentials.key_by_hash(tx, installation_keys.hash_api_key(token))
    if key is None or key.revoked_at is not None:
        raise errors.Unauthorized("Authorization: the API key is unknown or revoked")
    if key.disabled_at is not None:
        raise creator_disabled("API key")
    scopes = callers.scopes_of(key.scopes) - _withheld(key.creator)
    who = callers.Caller(
        account_id=key.account_id,
        credential_id=key.credential_id,
        scheme=callers.Scheme.API_KEY,
        permissions=frozenset(permission for permission in callers.PASSWORD_PERMISSIONS if permission.value in scopes),
        expires_at=key.limits.expires_at,
        key=callers.ApiKey(key.id, key.name, scopes, key.limits),
        is_test=installation_keys.is_test_key(token),
    )
    return AuthenticatedCaller(who, (last_used.API_KEY, key.id))


def _withheld(creator: users.Creator | None) -> frozenset[callers.Scope]:
    """The scopes that a key does not have, because whoever created it may no longer do as much."""
    if creator is None or creator.operator_since is not None:
        return frozenset()
    role = creator.role
    manages = role is not None and callers.Permission.MANAGE in callers.ROLE_PERMISSIONS[callers.Role(role)]
    return _OPERATING if manages else _OPERATING | {callers.Scope.TEAM}


async def _by_token(ctx: context.Context, token: str) -> AuthenticatedCaller:
    previous = [keys.token for keys in ctx.keys.previous]
    known = await by_claims(ctx, tokens.read(token, ctx.keys.token, now=ctx.clock(), previous=previous))
    if known.lacks_factor:
        raise second_factors.missing()
    return known


async def by_claims(ctx: context.Context, claims: tokens.Claims) -> AuthenticatedCaller:
    """The user of a token's claims, if its session has not ended."""
    async with ctx.store.reading() as tx:
        session = await sessions.by_id(tx, claims.jti)
        user = await users.by_id(tx, session.user_id) if session else None
        credential_id = await credentials.default_of(tx, user.account_id) if user else None
        account = await accounts.by_id(tx, user.account_id) if user else None
        factors = await stored_factors.of_login(tx, session.login_id) if session else None
        # An account that switches passwords off ends its sessions itself; a setting cannot.
        is_barred = (
            not ctx.settings.sso.passwords
            and session is not None
            and user is not None
            and not await sso_rules.admits(ctx, tx, user, session.methods)
        )
    if session is None or user is None or user.disabled_at is not None or user.login_id != session.login_id:
        raise tokens.refusal()
    if (user.id, user.account_id) != (claims.sub, claims.acc):
        raise tokens.refusal()
    if is_barred:
        raise tokens.refusal()
    is_short = (
        account is not None
        and second_factors.is_required(ctx, user, account)
        and not second_factors.suffice(session.methods)
    )
    if is_short and factors is not None and factors.exist:
        # Begun before the factor was required, or was set up.
        raise tokens.refusal()
    known = AuthenticatedCaller(
        callers.Caller(
            account_id=user.account_id,
            credential_id=credential_id,
            scheme=callers.Scheme.TOKEN,
            permissions=permissions_of(user),
            user_id=user.id,
            token_id=claims.jti,
            expires_at=claims.expires_at,
            confirmed_at=session.confirmed_at,
        ),
        (last_used.SESSION, session.id),
        session,
        lacks_factor=is_short,
    )
    return await _of_open_account(ctx, known)


def permissions_of(user: users.User) -> frozenset[callers.Permission]:
    """What a person may do: by the role in the account, and as an operator."""
    permissions = callers.ROLE_PERMISSIONS[callers.Role(user.role)]
    return permissions if user.operator_since is None else permissions | {callers.Permission.OPERATE}


def wrong_password() -> errors.Unauthorized:
    # While throttled, the right password is refused too; whoever corrected it has to learn why.
    return errors.Unauthorized(
        "Authorization: wrong username or password, or the credential is revoked; after several failures, also "
        "wait a minute"
    )


def creator_disabled(what: str) -> errors.CreatorDisabled:
    """The refusal of a right secret whose creator is disabled."""
    return errors.CreatorDisabled(
        f"this {what} is disabled because the user who created it is disabled; ask an owner or admin to enable the "
        "user or take it over"
    )


_HOW_TO: Final = "send 'Basic' with an SMTP username and password, or 'Bearer' with an API key or a token"


def find_caller(
    ctx: context.Context, authorization_field: str | None, *, client_address: str
) -> callers.Caller | Awaitable[callers.Caller]:
    """The caller if it is cached, otherwise an awaitable of it."""
    now = ctx.clock()
    facts = ctx.access_cache.fresh_entries(now)
    if authorization_field is not None and facts is not None:
        known: AuthenticatedCaller | None = facts.get(("caller", ctx.access_cache.digest(authorization_field)))
        if known is not None:
            return _admit(ctx, known, now=now)
    return authenticate(ctx, authorization_field, client_address=client_address)


async def authenticate(ctx: context.Context, authorization_field: str | None, *, client_address: str) -> callers.Caller:
    if authorization_field is None:
        raise errors.Unauthorized(f"Authorization: missing; {_HOW_TO}")
    fact = ("caller", ctx.access_cache.digest(authorization_field))
    try:
        known = await _look_up(ctx, _parse(authorization_field), fact=fact, client_address=client_address)
    except errors.RateLimited:
        # The interface has no other answer for `GET /emails/{id}`.
        raise wrong_password() from None
    return _admit(ctx, known, now=ctx.clock())


async def authenticate_password(
    ctx: context.Context, username: str, password: str, *, client_address: str
) -> callers.Caller:
    """The caller with this username and password, for interfaces without an `Authorization` header.

    Failures count together with those over HTTP. While throttled, no password is checked, so the error is RateLimited:
    a password that was not checked must not be called wrong.
    """
    fact = ("pair", username, ctx.access_cache.digest(password))
    known: AuthenticatedCaller | None = ctx.access_cache.get_fresh(fact, now=ctx.clock())
    if known is None:
        presented = http_values.Basic(username, password)
        try:
            known = await _look_up(ctx, presented, fact=fact, client_address=client_address)
        except (errors.AccountClosed, errors.CreatorDisabled):
            raise
        except errors.Unauthorized:
            msg = "wrong username or password, or the credential is revoked"
            raise errors.Unauthorized(msg) from None
    return _admit(ctx, known, now=ctx.clock())


async def renew(ctx: context.Context, who: callers.Caller) -> callers.Caller:
    """The caller of an open session, as long as its credential is active; needs no password."""
    if who.credential_id is None:
        raise errors.Unauthorized("log in with a username and password")
    used = (last_used.CREDENTIAL, who.credential_id)
    known: AuthenticatedCaller | None = ctx.access_cache.get_fresh(used, now=ctx.clock())
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
                raise creator_disabled("SMTP credential")
            known = facts[used] = AuthenticatedCaller(with_limits(who, account), used)
    return _admit(ctx, known, now=ctx.clock())


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
) -> AuthenticatedCaller:
    """The caller of a credential, from the refreshed cache or the database."""
    refuse_malformed(presented)
    facts = await ctx.access_cache.refresh(ctx.clock())
    known: AuthenticatedCaller | None = facts.get(fact)
    if known is None:
        known = await identify(ctx, presented, client_address=client_address)
        if await ctx.access_cache.refresh(ctx.clock()) is not facts:
            # A password check takes time: what was read before it may have been revoked since.
            return await identify(ctx, presented, client_address=client_address)
        facts[fact] = known
    return known


def _admit(ctx: context.Context, known: AuthenticatedCaller, *, now: int) -> callers.Caller:
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
    if who.key is not None and who.key.limits.networks and not callers.permits_address(who.key.limits, client_address):
        # Reading a message has no other refusal in the interface.
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
        raise needs_token()
    raise errors.Unauthorized(
        f"Authorization: this API key does not have the scope '{scope}'; use a key that has it, or a login token from "
        "/v1/auth/login"
    )


def needs_token() -> errors.Unauthorized:
    return errors.Unauthorized(
        "Authorization: requires a login token from /v1/auth/login, sent as 'Bearer'; programs send with POST /emails"
    )


# The rate of management requests: one token bucket per account, and one of half its size per user or API key.
#
# So one program cannot use up what the account's other users need. Sending and reading mail have limits of their own
# (`mail/accept/send_limits.py`). The buckets are in memory, so each process counts separately: what they protect is the
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
