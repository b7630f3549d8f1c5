"""API keys: created under an SMTP credential, stored hashed, shown once.

The account's first key creates a credential if there is none. A key shares the idempotency keys of its credential and
is revoked with it. What it may do are its scopes: each route of the API belongs to one. A key that creates keys gives
them no more than it has (`grants.py`). What a test key sends goes to the simulator (docs/testing.md).
"""

import dataclasses
import ipaddress
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.keys import installation_keys
from postroad.mail.accept import validation
from postroad.model.mail import statuses
from postroad.model.people import callers, grants
from postroad.model.units import identifiers, labels, times
from postroad.services import audit_log, usage_limits
from postroad.services.people import credentials as people_credentials
from postroad.storage.engine import store
from postroad.storage.people import accounts
from postroad.storage.people import credentials as stored_credentials

# A list is read with every request of its key.
MAX_LIMIT_NAMES: Final = 100
# Far more than any installation sends; sums stay far below what a database counts.
MAX_LIMIT_AMOUNT: Final = 1_000_000_000


def checked_limits(limits: callers.KeyLimits, *, now: int) -> callers.KeyLimits:
    """The limits in normal form; raises InvalidRequest with the name of the member."""
    for member in ("recipients_per_day", "credit_budget"):
        amount = getattr(limits, member)
        if amount is not None and not 1 <= amount <= MAX_LIMIT_AMOUNT:
            raise errors.InvalidRequest(f"{member}: must be from 1 to {MAX_LIMIT_AMOUNT}")
    if limits.approval_above is not None and not 0 <= limits.approval_above <= MAX_LIMIT_AMOUNT:
        raise errors.InvalidRequest(f"approval_above: must be from 0 to {MAX_LIMIT_AMOUNT}")
    if limits.expires_at is not None and limits.expires_at <= now:
        raise errors.InvalidRequest(f"expires_at: must be in the future; it is {times.to_wire(now)}")
    return callers.KeyLimits(
        domains=_names("domains", limits.domains, labels.parse_domain),
        networks=_names("networks", limits.networks, _network),
        templates=_names("templates", limits.templates, validation.check_alias),
        recipients_per_day=limits.recipients_per_day,
        credit_budget=limits.credit_budget,
        expires_at=limits.expires_at,
        approval_above=limits.approval_above,
    )


def _names(member: str, names: tuple[str, ...], normal: Callable[[str, str], str]) -> tuple[str, ...]:
    if len(names) > MAX_LIMIT_NAMES:
        raise errors.InvalidRequest(f"{member}: has {len(names)} entries; at most {MAX_LIMIT_NAMES} are allowed")
    return tuple(dict.fromkeys(normal(f"{member}[{index}]", name) for index, name in enumerate(names)))


def _network(field: str, text: str) -> str:
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        hint = _hint(text)
        raise errors.InvalidRequest(f"{field}: must be a network such as 192.0.2.0/24 or 2001:db8::/32{hint}") from None
    return str(network)


def _hint(text: str) -> str:
    """The network that an address with a prefix length is in, which is probably meant."""
    try:
        return f"; the network of this address is {ipaddress.ip_network(text, strict=False)}"
    except ValueError:
        return ""


SCOPE_WORDS: Final = (*callers.Scope, callers.EVERY_SCOPE)
TEST_SCOPES: Final = frozenset({callers.Scope.SEND, callers.Scope.READ})
HINT_CHARACTERS: Final = 4


async def create(
    ctx: context.Context,
    account_id: str,
    *,
    credential_id: str | None,
    name: str,
    scopes: frozenset[str],
    mode: statuses.Mode = statuses.Mode.LIVE,
    limits: callers.KeyLimits = callers.NO_LIMITS,
) -> tuple[stored_credentials.ApiKey, str]:
    """Create a key, and a credential for it if none is named and the account has none; returns its secret."""
    labels.check_label("name", name)
    words = _scope_words(scopes)
    _check_mode(mode, words)
    now = ctx.clock()
    limits = checked_limits(limits, now=now)
    grants.check_key(ctx.actor, callers.scopes_of(words), limits)
    secret = installation_keys.new_api_key(mode)
    chosen = grants.credential_of_key(ctx.actor, credential_id)
    async with ctx.store.transaction() as tx:
        needs_credential = chosen is None and await stored_credentials.first_live(tx, account_id) is None
        if needs_credential:
            # Whoever takes both locks takes this one first.
            await stored_credentials.bump_access_version(tx)
        await accounts.lock(tx, [account_id])
        await usage_limits.check_quota(ctx, tx, account_id, "api_keys")
        key = stored_credentials.ApiKey(
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
            creator=await people_credentials.creator_of(ctx, tx, account_id),
        )
        await stored_credentials.insert_key(tx, key, key_hash=installation_keys.hash_api_key(secret))
        await audit_log.write(ctx, tx, account_id, "api_key.created", name, key.scopes)
    if needs_credential:
        ctx.access_cache.invalidate()
    return key, secret


def mode_of(key: stored_credentials.ApiKey) -> statuses.Mode:
    """The mode of a key, by its prefix, which is the beginning of its hint."""
    return statuses.Mode.TEST if installation_keys.is_test_key(key.hint) else statuses.Mode.LIVE


async def of_account(
    ctx: context.Context, account_id: str, *, after: str = "", limit: int = stored_credentials.MAX_ROWS
) -> list[stored_credentials.ApiKey]:
    """A page of an account's keys, including revoked ones, oldest first. A key is revoked with its credential."""
    async with ctx.store.scanning(account_id) as tx:
        return await stored_credentials.keys_of_account(tx, account_id, after=after, limit=limit)


async def change(
    ctx: context.Context,
    account_id: str,
    key_id: str,
    *,
    name: str | None = None,
    scopes: frozenset[str] | None = None,
    limits: Mapping[str, Any] | None = None,
) -> stored_credentials.ApiKey:
    """Change what is given of a key, from its next request on; `limits` are the members of `Limits` that change."""
    if not identifiers.is_identifier(key_id, identifiers.API_KEY):
        raise _unknown()
    async with ctx.store.transaction() as tx:
        await stored_credentials.bump_access_version(tx)
        # Whoever sends with the key holds this lock while its limits are checked.
        await accounts.lock(tx, [account_id])
        key = await stored_credentials.key_by_id(tx, account_id, key_id)
        if key is None or key.revoked_at is not None:
            raise _unknown()
        changed = dataclasses.replace(
            key,
            name=key.name if name is None else labels.check_label("name", name),
            scopes=key.scopes if scopes is None else _scope_words(scopes),
            limits=_changed_limits(key.limits, limits or {}, now=ctx.clock()),
        )
        _check_mode(mode_of(key), changed.scopes)
        grants.check_key(ctx.actor, callers.scopes_of(changed.scopes), changed.limits, key_id=key.id)
        await stored_credentials.change_key(tx, changed)
        if changed != key:
            await audit_log.write(ctx, tx, account_id, "api_key.changed", changed.name, _differences(key, changed))
    ctx.access_cache.invalidate()
    return changed


async def revoke(ctx: context.Context, account_id: str, key_id: str) -> None:
    if not identifiers.is_identifier(key_id, identifiers.API_KEY):
        raise _unknown()
    async with ctx.store.transaction() as tx:
        await stored_credentials.bump_access_version(tx)
        name = await stored_credentials.revoke_key(tx, account_id, key_id, now=ctx.clock())
        if name is None:
            raise _unknown()
        await audit_log.write(ctx, tx, account_id, "api_key.revoked", name)
    ctx.access_cache.invalidate()


def _unknown() -> errors.NotFound:
    return errors.NotFound("no such active API key in this account")


def _changed_limits(limits: callers.KeyLimits, changes: Mapping[str, Any], *, now: int) -> callers.KeyLimits:
    """The limits with changes. Only an end date that is given has to be in the future: the old one may have passed."""
    checked = checked_limits(callers.KeyLimits(**changes), now=now)
    return msgspec.structs.replace(limits, **{member: getattr(checked, member) for member in changes})


def _differences(before: stored_credentials.ApiKey, after: stored_credentials.ApiKey) -> str:
    names = [member for member in ("name", "scopes") if getattr(before, member) != getattr(after, member)]
    names += [
        member
        for member in callers.KeyLimits.__struct_fields__
        if getattr(before.limits, member) != getattr(after.limits, member)
    ]
    return ", ".join(names)


def _scope_words(scopes: frozenset[str]) -> str:
    if not scopes or not scopes <= set(SCOPE_WORDS):
        raise errors.InvalidRequest(f"scopes: must be one or more of {', '.join(SCOPE_WORDS)}")
    named = [scope.value for scope in callers.Scope if scope in scopes]
    if callers.EVERY_SCOPE in scopes:
        named = [callers.EVERY_SCOPE, *(word for word in named if word == callers.Scope.OPERATOR)]
    return " ".join(named)


def _check_mode(mode: statuses.Mode, words: str) -> None:
    """What a test key may do is apart from live mail: it changes no settings, which both have in common."""
    if mode is statuses.Mode.TEST and not callers.scopes_of(words) <= TEST_SCOPES:
        raise errors.InvalidRequest("scopes: a test key can have 'send' and 'read' only; use a live key to manage")


async def _credential(ctx: context.Context, tx: store.Transaction, account_id: str, credential_id: str | None) -> str:
    if credential_id is None:
        return await people_credentials.first(ctx, tx, account_id)
    credential = None
    if identifiers.is_identifier(credential_id, identifiers.CREDENTIAL):
        credential = await stored_credentials.by_id(tx, account_id, credential_id)
    if credential is None or credential.revoked_at is not None:
        raise errors.NotFound("credential_id: no such active SMTP credential in this account")
    return credential.id
