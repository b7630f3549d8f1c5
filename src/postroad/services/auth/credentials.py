"""SMTP credentials: username and password are generated, and the password is shown once.

A revoked credential stops working at once on every host, together with its API keys. It stays in the list for
reference, but can no longer be read or revoked by id. An account that needs none gets one with its first API key.
"""

from typing import Final

from postroad import errors
from postroad.model import identifiers, labels
from postroad.services import account_quotas, audit_log, context
from postroad.services.auth import creators, grants, installation_keys
from postroad.storage import access_version, credentials, known_networks, store

# The credential that is created with the first API key.
FIRST_NAME: Final = "API keys"
USERNAME_PREFIX: Final = "smtp_"
# 16 characters of 36 are 82 bits: usernames never collide. It is not a secret.
USERNAME_CHARACTERS: Final = 16


async def create(ctx: context.Context, account_id: str, name: str) -> tuple[credentials.Credential, str]:
    """Create a credential; returns its password, which is shown once."""
    labels.check("name", name)
    grants.check_credential(ctx.actor)
    secret = installation_keys.random_text(installation_keys.SECRET_CHARACTERS)
    password = secret + installation_keys.checksum(secret)
    password_hash = await ctx.passwords.hash(password, party=account_id)
    async with ctx.store.transaction() as tx:
        # The first credential is the sending identity of the account's tokens: a cached "none" must be dropped.
        await access_version.bump(tx)
        credential = await _insert(
            ctx, tx, account_id, name=name, username=_new_username(), password_hash=password_hash
        )
    ctx.access_cache.invalidate()
    return credential, password


async def first(ctx: context.Context, tx: store.Transaction, account_id: str) -> str:
    """The oldest active credential, which is created when there is none: its password matches nothing.

    A caller that knows of it bumps the access version before it locks the account.
    """
    found = await credentials.first_live(tx, account_id)
    if found is not None:
        return found
    await access_version.bump(tx)
    username = _new_username()
    password_hash = ctx.passwords.dummy_hash(username)
    made = await _insert(ctx, tx, account_id, name=FIRST_NAME, username=username, password_hash=password_hash)
    return made.id


async def of_account(
    ctx: context.Context, account_id: str, *, after: str = "", limit: int = credentials.MAX_ROWS
) -> list[credentials.Credential]:
    """A page of an account's credentials, including revoked ones, oldest first."""
    async with ctx.store.scanning(account_id) as tx:
        return await credentials.of_account(tx, account_id, after=after, limit=limit)


async def find(ctx: context.Context, account_id: str, credential_id: str) -> credentials.Credential:
    """One active credential of an account."""
    _check_id(credential_id)
    async with ctx.store.reading() as tx:
        credential = await credentials.by_id(tx, account_id, credential_id)
    if credential is None or credential.revoked_at is not None:
        raise _not_found()
    return credential


async def revoke(ctx: context.Context, account_id: str, credential_id: str) -> None:
    """Revoke a credential and its API keys."""
    _check_id(credential_id)
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        credential = await credentials.by_id(tx, account_id, credential_id)
        if credential is None or not await credentials.revoke(tx, account_id, credential_id, now=ctx.clock()):
            raise _not_found()
        await known_networks.remove(tx, credential_id)
        await audit_log.write(ctx, tx, account_id, "credential.revoked", credential.name, credential.username)
    ctx.access_cache.invalidate()


def _new_username() -> str:
    return USERNAME_PREFIX + installation_keys.random_text(USERNAME_CHARACTERS).lower()


async def _insert(
    ctx: context.Context, tx: store.Transaction, account_id: str, *, name: str, username: str, password_hash: str
) -> credentials.Credential:
    await account_quotas.check(ctx, tx, account_id, "credentials")
    now = ctx.clock()
    credential = credentials.Credential(
        id=ctx.new_id(identifiers.CREDENTIAL, now=now),
        account_id=account_id,
        name=name,
        username=username,
        password_hash=password_hash,
        created_at=now,
        last_used_at=None,
        revoked_at=None,
        creator=await creators.of_actor(ctx, tx, account_id),
    )
    await credentials.insert(tx, credential)
    await audit_log.write(ctx, tx, account_id, "credential.created", name, username)
    return credential


def _check_id(credential_id: str) -> None:
    if not identifiers.is_identifier(credential_id, identifiers.CREDENTIAL):
        raise _not_found()


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such active SMTP credential in this account")
