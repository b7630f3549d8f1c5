"""From a presented credential to a caller: one function for each of the three schemes (docs/api.md, "Authentication").

Each reads the database once and trusts nothing else: a token's role comes from the database, and a scope that keys
cannot have is ignored. All failures of a password, a key or a token get the same message.
"""

import contextlib
import dataclasses
import functools
from typing import Final

import msgspec

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.model.people import callers as model_caller
from postroad.model.people import login_rules
from postroad.model.units import times
from postroad.protocol.text import http_values
from postroad.services.people import access_cache, password_checks, second_factors, tokens
from postroad.services.people import sso_connections as sso_rules
from postroad.storage.engine import store
from postroad.storage.people import accounts, credentials, rates, sessions, users
from postroad.storage.people import second_factors as stored_factors

# Generated usernames are much shorter; a longer or unprintable one is unknown without a query.
USERNAME_CHARACTERS: Final = 64
_OPERATING: Final = frozenset({model_caller.Scope.OPERATOR})
CLOSED: Final = "the account is closed; contact the operator of this service"
# A login from a known network is recorded again only after this time: a busy application writes nothing.
NETWORK_RENEWAL: Final = times.DAY


class AuthenticatedCaller(msgspec.Struct, frozen=True):
    """A caller, the secret whose use is recorded, and the session of a person.

    Somebody who lacks a second factor that is required has to set it up first.
    """

    caller: model_caller.Caller
    used: access_cache.UsedSecret | None = None
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


async def authenticate(
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


def with_limits(who: model_caller.Caller, account: accounts.Account | None) -> model_caller.Caller:
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
    is_right = await password_checks.check_credential_password(
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
    who = model_caller.Caller(live.account_id, live.id, model_caller.Scheme.PASSWORD, model_caller.PASSWORD_PERMISSIONS)
    return AuthenticatedCaller(who, (access_cache.USED_CREDENTIAL, live.id))


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
    scopes = model_caller.scopes_of(key.scopes) - _withheld(key.creator)
    who = model_caller.Caller(
        account_id=key.account_id,
        credential_id=key.credential_id,
        scheme=model_caller.Scheme.API_KEY,
        permissions=frozenset(
            permission for permission in model_caller.PASSWORD_PERMISSIONS if permission.value in scopes
        ),
        expires_at=key.limits.expires_at,
        key=model_caller.ApiKey(key.id, key.name, scopes, key.limits),
        is_test=installation_keys.is_test_key(token),
    )
    return AuthenticatedCaller(who, (access_cache.USED_API_KEY, key.id))


def _withheld(creator: users.Creator | None) -> frozenset[model_caller.Scope]:
    """The scopes that a key does not have, because whoever created it may no longer do as much."""
    if creator is None or creator.operator_since is not None:
        return frozenset()
    role = creator.role
    manages = (
        role is not None and model_caller.Permission.MANAGE in model_caller.ROLE_PERMISSIONS[model_caller.Role(role)]
    )
    return _OPERATING if manages else _OPERATING | {model_caller.Scope.TEAM}


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
        model_caller.Caller(
            account_id=user.account_id,
            credential_id=credential_id,
            scheme=model_caller.Scheme.TOKEN,
            permissions=permissions_of(user),
            user_id=user.id,
            token_id=claims.jti,
            expires_at=claims.expires_at,
            confirmed_at=session.confirmed_at,
        ),
        (access_cache.USED_SESSION, session.id),
        session,
        lacks_factor=is_short,
    )
    return await _of_open_account(ctx, known)


def permissions_of(user: users.User) -> frozenset[model_caller.Permission]:
    """What a person may do: by the role in the account, and as an operator."""
    permissions = model_caller.ROLE_PERMISSIONS[model_caller.Role(user.role)]
    return permissions if user.operator_since is None else permissions | {model_caller.Permission.OPERATE}


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
