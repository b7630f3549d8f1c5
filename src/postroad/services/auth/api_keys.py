"""API keys: created under an SMTP credential, stored hashed, shown once.

A key shares the idempotency keys of its credential and is revoked with it. A key may send; with the
scope `read` it may also read messages.
"""

from typing import Final

from postroad import errors
from postroad.model import caller, identifiers, labels
from postroad.services import account_quotas, audit_log, context
from postroad.services.auth import installation_keys
from postroad.storage import access_version, accounts, api_keys, credentials, store

# In the order in which they are stored and shown.
SCOPES: Final = (caller.Permission.SEND, caller.Permission.READ)
HINT_CHARACTERS: Final = 4


async def create(
    ctx: context.Context,
    account_id: str,
    *,
    credential_id: str | None,
    name: str,
    scopes: frozenset[caller.Permission],
) -> tuple[api_keys.ApiKey, str]:
    """Create a key, under the oldest active credential when none is named; returns its secret, which is shown once."""
    labels.check("name", name)
    _check_scopes(scopes)
    secret = installation_keys.new_api_key()
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        await accounts.lock(tx, [account_id])
        await account_quotas.check(ctx, tx, account_id, "api_keys")
        key = api_keys.ApiKey(
            id=ctx.new_id(identifiers.API_KEY, now=now),
            account_id=account_id,
            credential_id=await _credential(tx, account_id, credential_id),
            name=name,
            hint=secret[: len(installation_keys.API_KEY_PREFIX) + HINT_CHARACTERS] + "…",
            scopes=" ".join(scope for scope in SCOPES if scope in scopes),
            created_at=now,
            last_used_at=None,
            revoked_at=None,
        )
        await api_keys.insert(tx, key, key_hash=installation_keys.hash_api_key(secret))
        await audit_log.write(ctx, tx, account_id, "api_key.created", name, key.scopes)
    return key, secret


async def of_account(
    ctx: context.Context, account_id: str, *, after: str = "", limit: int = api_keys.MAX_ROWS
) -> list[api_keys.ApiKey]:
    """A page of an account's keys, including revoked ones, oldest first. A key is revoked with its credential."""
    async with ctx.store.scanning(account_id) as tx:
        return await api_keys.of_account(tx, account_id, after=after, limit=limit)


async def revoke(ctx: context.Context, account_id: str, key_id: str) -> None:
    """Revoke a key."""
    unknown = errors.NotFound("no such active API key in this account")
    if not identifiers.is_identifier(key_id, identifiers.API_KEY):
        raise unknown
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        name = await api_keys.revoke(tx, account_id, key_id, now=ctx.clock())
        if name is None:
            raise unknown
        await audit_log.write(ctx, tx, account_id, "api_key.revoked", name)
    ctx.access_cache.invalidate()


def _check_scopes(scopes: frozenset[caller.Permission]) -> None:
    if caller.Permission.SEND not in scopes or not scopes <= set(SCOPES):
        raise errors.InvalidRequest("scopes: must be 'send', or 'send' and 'read'")


async def _credential(tx: store.Transaction, account_id: str, credential_id: str | None) -> str:
    if credential_id is None:
        found = await credentials.first_live(tx, account_id)
        if found is None:
            raise errors.Conflict("credential_id: the account has no active SMTP credential; create one first")
        return found
    credential = None
    if identifiers.is_identifier(credential_id, identifiers.CREDENTIAL):
        credential = await credentials.by_id(tx, account_id, credential_id)
    if credential is None or credential.revoked_at is not None:
        raise errors.NotFound("credential_id: no such active SMTP credential in this account")
    return credential.id
