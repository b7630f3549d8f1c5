"""From what a caller presents to who it is: one function for each of the three schemes (docs/api.md, "Who you are").

Each reads the store once and trusts nothing else: a token's role is taken from the store, a scope that keys cannot have
is ignored. A password, a key and a token are each refused with one text, whatever was wrong with them.
"""

from dataclasses import dataclass
from typing import Final

from postroad import errors
from postroad.model import caller
from postroad.protocol import authorization
from postroad.services import context
from postroad.services.auth import installation_keys, last_used, password_checks, tokens
from postroad.storage import api_keys, credentials, users

# Generated usernames are much shorter; what is longer or unprintable is nobody's, and not for the store to see.
USERNAME_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """A caller, and the secret whose use is to be noted."""

    caller: caller.Caller
    used: last_used.UsedSecret | None = None


def refuse_malformed(presented: authorization.Basic | authorization.Bearer) -> None:
    """Refuse what cannot be a credential of ours, before the store is asked anything."""
    match presented:
        case authorization.Bearer(token) if token.startswith(installation_keys.API_KEY_PREFIX):
            if not installation_keys.is_api_key(token):
                raise errors.Unauthorized("Authorization: the API key is mistyped or cut off; its checksum is wrong")
        case authorization.Basic(username) if len(username) > USERNAME_CHARACTERS or not username.isprintable():
            raise _wrong_password()


async def authenticate(
    ctx: context.Context, presented: authorization.Basic | authorization.Bearer, *, client_address: str
) -> AuthenticatedCaller:
    """Who presents this, or Unauthorized."""
    match presented:
        case authorization.Basic():
            return await _by_password(ctx, presented, client_address=client_address)
        case authorization.Bearer(token) if token.startswith(installation_keys.API_KEY_PREFIX):
            return await _by_api_key(ctx, token)
        case authorization.Bearer(token):
            return await _by_token(ctx, token)


async def _by_password(
    ctx: context.Context, presented: authorization.Basic, *, client_address: str
) -> AuthenticatedCaller:
    async with ctx.store.reading() as tx:
        found = await credentials.by_username(tx, presented.username)
    live = found if found is not None and found.revoked_at is None else None
    is_right = await password_checks.check_credential_password(
        ctx,
        presented.username,
        presented.password,
        password_hash=live.password_hash if live else None,
        client_address=client_address,
    )
    if live is None or not is_right:
        raise _wrong_password()
    who = caller.Caller(live.account_id, live.id, caller.Scheme.PASSWORD, caller.PASSWORD_PERMISSIONS)
    return AuthenticatedCaller(who, (last_used.CREDENTIAL, live.id))


async def _by_api_key(ctx: context.Context, token: str) -> AuthenticatedCaller:
    async with ctx.store.reading() as tx:
        key = await api_keys.by_hash(tx, installation_keys.hash_api_key(token))
    if key is None or key.revoked_at is not None:
        raise errors.Unauthorized("Authorization: the API key is unknown or revoked")
    words = key.scopes.split()
    # A key never has more rights than the SMTP credential that it was issued under.
    permissions = frozenset(permission for permission in caller.PASSWORD_PERMISSIONS if permission.value in words)
    who = caller.Caller(key.account_id, key.credential_id, caller.Scheme.API_KEY, permissions)
    return AuthenticatedCaller(who, (last_used.API_KEY, key.id))


async def _by_token(ctx: context.Context, token: str) -> AuthenticatedCaller:
    return await by_claims(ctx, tokens.read(token, ctx.keys.token, now=ctx.clock()))


async def by_claims(ctx: context.Context, claims: tokens.Claims) -> AuthenticatedCaller:
    """The person whom the claims of a token name that is ours, if it was not taken back."""
    async with ctx.store.reading() as tx:
        user = await users.by_id(tx, claims.sub)
        is_revoked = await users.is_token_revoked(tx, claims.jti)
        credential_id = await credentials.default_of(tx, user.account_id) if user else None
    if user is None or user.disabled_at is not None or is_revoked:
        raise tokens.refusal()
    if user.account_id != claims.acc or user.tokens_valid_from != claims.epoch:
        raise tokens.refusal()
    return AuthenticatedCaller(
        caller.Caller(
            account_id=user.account_id,
            credential_id=credential_id,
            scheme=caller.Scheme.TOKEN,
            permissions=caller.ROLE_PERMISSIONS[caller.Role(user.role)],
            user_id=user.id,
            token_id=claims.jti,
            expires_at=claims.expires_at,
        )
    )


def _wrong_password() -> errors.Unauthorized:
    # While slowed, the right password is refused too; whoever mistyped it and then mended it has to learn why.
    return errors.Unauthorized(
        "Authorization: the username or the password is wrong, or the credential is revoked; "
        "after several failures, also wait a minute"
    )
