"""API keys: created under an SMTP credential, stored hashed, shown once.

The account's first key creates a credential if there is none. A key shares the idempotency keys of its credential and
is revoked with it. What it may do are its scopes: each route of the API belongs to one. A key that creates keys gives
them no more than it has (`grants.py`). What a test key sends goes to the simulator (docs/testing.md).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.model import caller, identifiers, key_limits, labels, mail
from postroad.services import account_quotas, audit_log, context
from postroad.services.auth import creators, grants, installation_keys, limit_rules
from postroad.services.auth import credentials as credential_service
from postroad.storage import access_version, accounts, api_keys, credentials, store

SCOPE_WORDS: Final = (*caller.Scope, caller.EVERY_SCOPE)
TEST_SCOPES: Final = frozenset({caller.Scope.SEND, caller.Scope.READ})
HINT_CHARACTERS: Final = 4


async def create(
    ctx: context.Context,
    account_id: str,
    *,
    credential_id: str | None,
    name: str,
    scopes: frozenset[str],
    mode: mail.Mode = mail.Mode.LIVE,
    limits: key_limits.Limits = key_limits.NO_LIMITS,
) -> tuple[api_keys.ApiKey, str]:
    """Create a key, and a credential for it if none is named and the account has none; returns its secret."""
    labels.check("name", name)
    words = _scope_words(scopes)
    _check_mode(mode, words)
    now = ctx.clock()
    limits = limit_rules.checked(limits, now=now)
    grants.check_key(ctx.actor, caller.scopes_of(words), limits)
    secret = installation_keys.new_api_key(mode)
    chosen = grants.credential_of_key(ctx.actor, credential_id)
    async with ctx.store.transaction() as tx:
        needs_credential = chosen is None and await credentials.first_live(tx, account_id) is None
        if needs_credential:
            # Whoever takes both locks takes this one first.
            await access_version.bump(tx)
        await accounts.lock(tx, [account_id])
        await account_quotas.check(ctx, tx, account_id, "api_keys")
        key = api_keys.ApiKey(
            id=ctx.new_id(identifiers.API_KEY, now=now),
            account_id=account_id,
            credential_id=await _credential(ctx, tx, account_id, chosen),
            name=name,
            hint=secret[: len(installation_keys.API_KEY_PREFIX) + HINT_CHARACTERS] + "…",
            scopes=words,
            created_at=now,
            last_used_at=None,
            revoked_at=None,
            limits=limits,
            creator=await creators.of_actor(ctx, tx, account_id),
        )
        await api_keys.insert(tx, key, key_hash=installation_keys.hash_api_key(secret))
        await audit_log.write(ctx, tx, account_id, "api_key.created", name, key.scopes)
    if needs_credential:
        ctx.access_cache.invalidate()
    return key, secret


def mode_of(key: api_keys.ApiKey) -> mail.Mode:
    """The mode of a key, by its prefix, which is the beginning of its hint."""
    return mail.Mode.TEST if installation_keys.is_test_key(key.hint) else mail.Mode.LIVE


async def of_account(
    ctx: context.Context, account_id: str, *, after: str = "", limit: int = api_keys.MAX_ROWS
) -> list[api_keys.ApiKey]:
    """A page of an account's keys, including revoked ones, oldest first. A key is revoked with its credential."""
    async with ctx.store.scanning(account_id) as tx:
        return await api_keys.of_account(tx, account_id, after=after, limit=limit)


async def change(
    ctx: context.Context,
    account_id: str,
    key_id: str,
    *,
    name: str | None = None,
    scopes: frozenset[str] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> api_keys.ApiKey:
    """Change what is given of a key, from its next request on; `limits` are the members of `Limits` that change."""
    if not identifiers.is_identifier(key_id, identifiers.API_KEY):
        raise _unknown()
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        # Whoever sends with the key holds this lock while its limits are checked.
        await accounts.lock(tx, [account_id])
        key = await api_keys.by_id(tx, account_id, key_id)
        if key is None or key.revoked_at is not None:
            raise _unknown()
        changed = dataclasses.replace(
            key,
            name=key.name if name is None else labels.check("name", name),
            scopes=key.scopes if scopes is None else _scope_words(scopes),
            limits=_changed_limits(key.limits, limits or {}, now=ctx.clock()),
        )
        _check_mode(mode_of(key), changed.scopes)
        grants.check_key(ctx.actor, caller.scopes_of(changed.scopes), changed.limits, key_id=key.id)
        await api_keys.change(tx, changed)
        if changed != key:
            await audit_log.write(ctx, tx, account_id, "api_key.changed", changed.name, _differences(key, changed))
    ctx.access_cache.invalidate()
    return changed


async def revoke(ctx: context.Context, account_id: str, key_id: str) -> None:
    """Revoke a key."""
    if not identifiers.is_identifier(key_id, identifiers.API_KEY):
        raise _unknown()
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        name = await api_keys.revoke(tx, account_id, key_id, now=ctx.clock())
        if name is None:
            raise _unknown()
        await audit_log.write(ctx, tx, account_id, "api_key.revoked", name)
    ctx.access_cache.invalidate()


def _unknown() -> errors.NotFound:
    return errors.NotFound("no such active API key in this account")


def _changed_limits(limits: key_limits.Limits, changes: Mapping[str, Any], *, now: int) -> key_limits.Limits:
    """The limits with changes. Only an end date that is given has to be in the future: the old one may have passed."""
    checked = limit_rules.checked(key_limits.Limits(**changes), now=now)
    return msgspec.structs.replace(limits, **{member: getattr(checked, member) for member in changes})


def _differences(before: api_keys.ApiKey, after: api_keys.ApiKey) -> str:
    """The names of the members that differ."""
    names = [member for member in ("name", "scopes") if getattr(before, member) != getattr(after, member)]
    names += [
        member
        for member in key_limits.Limits.__struct_fields__
        if getattr(before.limits, member) != getattr(after.limits, member)
    ]
    return ", ".join(names)


def _scope_words(scopes: frozenset[str]) -> str:
    """Scopes as they are stored."""
    if not scopes or not scopes <= set(SCOPE_WORDS):
        raise errors.InvalidRequest(f"scopes: must be one or more of {', '.join(SCOPE_WORDS)}")
    named = [scope.value for scope in caller.Scope if scope in scopes]
    if caller.EVERY_SCOPE in scopes:
        named = [caller.EVERY_SCOPE, *(word for word in named if word == caller.Scope.OPERATOR)]
    return " ".join(named)


def _check_mode(mode: mail.Mode, words: str) -> None:
    """What a test key may do is apart from live mail: it changes no settings, which both have in common."""
    if mode is mail.Mode.TEST and not caller.scopes_of(words) <= TEST_SCOPES:
        raise errors.InvalidRequest("scopes: a test key can have 'send' and 'read' only; use a live key to manage")


async def _credential(ctx: context.Context, tx: store.Transaction, account_id: str, credential_id: str | None) -> str:
    if credential_id is None:
        return await credential_service.first(ctx, tx, account_id)
    credential = None
    if identifiers.is_identifier(credential_id, identifiers.CREDENTIAL):
        credential = await credentials.by_id(tx, account_id, credential_id)
    if credential is None or credential.revoked_at is not None:
        raise errors.NotFound("credential_id: no such active SMTP credential in this account")
    return credential.id
