"""SMTP credentials, generated and shown once; and who created credentials and API keys."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.model.people import callers, grants
from postroad.model.units import identifiers, labels
from postroad.services import audit_log, usage_limits
from postroad.storage.engine import store
from postroad.storage.people import credentials as stored_api_keys
from postroad.storage.people import rates, users

# Who created API keys and SMTP credentials, and what happens to them when that person is disabled or removed.
#
# What a person created does not work while they are disabled: they may have its secrets. Whoever disables or removes a
# person sees what they created, and may take it over, so that it keeps working; what a removed person created can be
# revoked as well. Keys that operate the installation are always revoked: they would have the rights of whoever takes
# them over.


class SecretsAction(StrEnum):
    HAND_OVER = "hand_over"
    REVOKE = "revoke"


class CreatedSecrets(msgspec.Struct, frozen=True):
    """What a person created and what is still active, oldest first."""

    api_keys: Sequence[stored_api_keys.ApiKey]
    credentials: Sequence[stored_api_keys.Credential]


async def creator_of(ctx: context.Context, tx: store.Transaction, account_id: str) -> users.Creator | None:
    """The person who creates something; of what a key creates, the person who created that key."""
    who = ctx.actor.who
    if who is None or who.key is None:
        user = await users.by_id(tx, ctx.actor.user_id) if ctx.actor.user_id is not None else None
        return None if user is None else users.Creator(user.id, user.email, user.role, user.operator_since)
    creating = await stored_api_keys.key_by_id(tx, account_id, who.key.id)
    return None if creating is None else creating.creator


async def secrets_created_by(ctx: context.Context, user: users.User) -> CreatedSecrets:
    async with ctx.store.scanning(user.account_id) as tx:
        return await _created(tx, user)


async def settle_secrets(
    ctx: context.Context, tx: store.Transaction, user: users.User, secrets: SecretsAction
) -> CreatedSecrets:
    """Revoke what a user created, or hand it over to the acting person; returns what was revoked."""
    created = await _created(tx, user)
    revoked = created
    if secrets is SecretsAction.HAND_OVER:
        revoked = CreatedSecrets(
            [api_key for api_key in created.api_keys if (callers.Scope.OPERATOR in callers.scopes_of(api_key.scopes))],
            [],
        )
    for key in revoked.api_keys:
        await stored_api_keys.revoke_key(tx, user.account_id, key.id, now=ctx.clock())
        await audit_log.write(ctx, tx, user.account_id, "api_key.revoked", key.name)
    for credential in revoked.credentials:
        await stored_api_keys.revoke(tx, user.account_id, credential.id, now=ctx.clock())
        await rates.remove_networks(tx, credential.id)
        await audit_log.write(ctx, tx, user.account_id, "credential.revoked", credential.name, credential.username)
    if revoked != created:
        await _hand_over(ctx, tx, user)
    return revoked


async def _hand_over(ctx: context.Context, tx: store.Transaction, user: users.User) -> None:
    """Make the acting person the creator; after a command, there is none."""
    taker = await creator_of(ctx, tx, user.account_id)
    if taker is not None and taker.id == user.id:
        raise errors.Conflict(
            "you cannot hand over your API keys and SMTP credentials to yourself; somebody else has to take them over"
        )
    to = None if taker is None else taker.id
    await stored_api_keys.hand_over_keys(tx, user.account_id, user.id, to=to)
    await stored_api_keys.hand_over(tx, user.account_id, user.id, to=to)
    action = "user.secrets_kept" if taker is None else "user.secrets_handed_over"
    await audit_log.write(ctx, tx, user.account_id, action, user.email)


async def _created(tx: store.Transaction, user: users.User) -> CreatedSecrets:
    return CreatedSecrets(
        await stored_api_keys.keys_of_creator(tx, user.account_id, user.id),
        await stored_api_keys.of_creator(tx, user.account_id, user.id),
    )


# The credential that is created with the first API key.
FIRST_NAME: Final = "API keys"
# 16 characters of 36 are 82 bits: usernames never collide. It is not a secret.
USERNAME_CHARACTERS: Final = 16


async def create(ctx: context.Context, account_id: str, name: str) -> tuple[stored_api_keys.Credential, str]:
    """Create a credential; returns its password, which is shown once."""
    labels.check_label("name", name)
    grants.check_credential(ctx.actor)
    secret = installation_keys.random_text(installation_keys.SECRET_CHARACTERS)
    password = secret + installation_keys.checksum(secret)
    password_hash = await ctx.passwords.hash(password, party=account_id)
    async with ctx.store.transaction() as tx:
        # The first credential is the sending identity of the account's tokens: a cached "none" must be dropped.
        await stored_api_keys.bump_access_version(tx)
        credential = await _insert(
            ctx, tx, account_id, name=name, username=_new_username(), password_hash=password_hash
        )
    ctx.access_cache.invalidate()
    return credential, password


async def first(ctx: context.Context, tx: store.Transaction, account_id: str) -> str:
    """The oldest active credential, which is created when there is none: its password matches nothing.

    A caller that knows of it bumps the access version before it locks the account.
    """
    found = await stored_api_keys.first_live(tx, account_id)
    if found is not None:
        return found
    await stored_api_keys.bump_access_version(tx)
    username = _new_username()
    password_hash = ctx.passwords.dummy_hash(username)
    made = await _insert(ctx, tx, account_id, name=FIRST_NAME, username=username, password_hash=password_hash)
    return made.id


async def of_account(
    ctx: context.Context, account_id: str, *, after: str = "", limit: int = stored_api_keys.MAX_ROWS
) -> list[stored_api_keys.Credential]:
    """A page of an account's credentials, including revoked ones, oldest first."""
    async with ctx.store.scanning(account_id) as tx:
        return await stored_api_keys.of_account(tx, account_id, after=after, limit=limit)


async def find(ctx: context.Context, account_id: str, credential_id: str) -> stored_api_keys.Credential:
    _check_id(credential_id)
    async with ctx.store.reading() as tx:
        credential = await stored_api_keys.by_id(tx, account_id, credential_id)
    if credential is None or credential.revoked_at is not None:
        raise _not_found()
    return credential


async def revoke(ctx: context.Context, account_id: str, credential_id: str) -> None:
    _check_id(credential_id)
    async with ctx.store.transaction() as tx:
        await stored_api_keys.bump_access_version(tx)
        credential = await stored_api_keys.by_id(tx, account_id, credential_id)
        if credential is None or not await stored_api_keys.revoke(tx, account_id, credential_id, now=ctx.clock()):
            raise _not_found()
        await rates.remove_networks(tx, credential_id)
        await audit_log.write(ctx, tx, account_id, "credential.revoked", credential.name, credential.username)
    ctx.access_cache.invalidate()


def _new_username() -> str:
    return "smtp_" + installation_keys.random_text(USERNAME_CHARACTERS).lower()


async def _insert(
    ctx: context.Context, tx: store.Transaction, account_id: str, *, name: str, username: str, password_hash: str
) -> stored_api_keys.Credential:
    await usage_limits.check_quota(ctx, tx, account_id, "credentials")
    now = ctx.clock()
    credential = stored_api_keys.Credential(
        id=ctx.new_id(identifiers.CREDENTIAL, now=now),
        account_id=account_id,
        name=name,
        username=username,
        password_hash=password_hash,
        created_at=now,
        last_used_at=None,
        revoked_at=None,
        creator=await creator_of(ctx, tx, account_id),
    )
    await stored_api_keys.insert(tx, credential)
    await audit_log.write(ctx, tx, account_id, "credential.created", name, username)
    return credential


def _check_id(credential_id: str) -> None:
    if not identifiers.is_identifier(credential_id, identifiers.CREDENTIAL):
        raise _not_found()


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such active SMTP credential in this account")
