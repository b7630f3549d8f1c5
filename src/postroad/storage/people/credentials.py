"""What programs send with: SMTP credentials, and the API keys that are issued under them.

Only hashes of secrets are stored.
"""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from postroad.model.people import callers
from postroad.storage.engine import queries, store
from postroad.storage.people import users

# Every list has a limit; callers page through longer ones.
MAX_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Credential(users.CreatedByUser):
    """A row of `credentials`."""

    id: str
    account_id: str
    name: str
    username: str
    password_hash: str = field(repr=False)
    created_at: int
    last_used_at: int | None
    revoked_at: int | None
    creator: users.Creator | None = None


def _credential(*row: Any) -> Credential:
    return dataclasses.replace(Credential(*row[:8]), creator=users.creator_of(row[8:]))


async def insert(tx: store.Transaction, credential: Credential) -> None:
    row = (credential.id, credential.account_id, credential.name, credential.username)
    await tx.execute("credentials.insert", *row, credential.password_hash, credential.created_at, credential.created_by)


@queries.row("credentials.by_username", _credential)
async def by_username(tx: store.Transaction, username: str) -> Credential | None: ...
@queries.row("credentials.by_id", _credential)
async def by_id(tx: store.Transaction, account_id: str, credential_id: str) -> Credential | None: ...
@queries.rows("credentials.of_account", _credential)
async def of_account(
    tx: store.Transaction, account_id: str, *, after: str = "", limit: int = MAX_ROWS
) -> list[Credential]: ...
@queries.row("credentials.default_of", str)
async def default_of(tx: store.Transaction, account_id: str) -> str | None: ...
@queries.row("credentials.first_live", str)
async def first_live(tx: store.Transaction, account_id: str) -> str | None: ...
@queries.changed("credentials.revoke")
async def revoke(tx: store.Transaction, account_id: str, credential_id: str, *, now: int) -> bool: ...
@queries.change("credentials.touch")
async def touch(tx: store.Transaction, credential_id: str, *, now: int) -> None: ...
# Ten revoked ones count as one.
@queries.count("credentials.count")
async def count(tx: store.Transaction, account_id: str) -> int: ...
@queries.rows("credentials.of_creator", _credential)
async def of_creator(tx: store.Transaction, account_id: str, user_id: str) -> list[Credential]: ...
@queries.change("credentials.hand_over")
async def hand_over(tx: store.Transaction, account_id: str, user_id: str, *, to: str | None) -> None: ...


@dataclass(frozen=True, slots=True)
class ApiKey(users.CreatedByUser):
    """A row of `api_keys` without its hash. `scopes` are words joined by a space. `usage` is that of a limited key."""

    id: str
    account_id: str
    credential_id: str
    name: str
    hint: str
    scopes: str
    created_at: int
    last_used_at: int | None
    revoked_at: int | None
    limits: callers.KeyLimits = callers.NO_LIMITS
    usage: callers.KeyUsage | None = None
    creator: users.Creator | None = None


def _key(*row: Any) -> ApiKey:
    limits = callers.KeyLimits(
        domains=tuple(row[9].split()),
        networks=tuple(row[10].split()),
        templates=tuple(row[11].split()),
        recipients_per_day=row[12],
        credit_budget=row[13],
        expires_at=row[14],
        approval_above=row[15],
    )
    return dataclasses.replace(
        ApiKey(*row[:9]), limits=limits, usage=_usage(row[16:19]), creator=users.creator_of(row[19:])
    )


def _usage(columns: store.Row) -> callers.KeyUsage | None:
    return None if columns[0] is None else callers.KeyUsage(*columns)


def _limit_columns(limits: callers.KeyLimits) -> tuple[str | int | None, ...]:
    names = (" ".join(words) for words in (limits.domains, limits.networks, limits.templates))
    return (*names, limits.recipients_per_day, limits.credit_budget, limits.expires_at, limits.approval_above)


async def insert_key(tx: store.Transaction, key: ApiKey, *, key_hash: bytes) -> None:
    row = (key.id, key.account_id, key.credential_id, key.name, key_hash, key.hint, key.scopes, key.created_at)
    await tx.execute("api_keys.insert", *row, key.created_by, *_limit_columns(key.limits))


# Revoked when its credential is; so are the others.
@queries.row("api_keys.by_hash", _key)
async def key_by_hash(tx: store.Transaction, key_hash: bytes) -> ApiKey | None: ...
@queries.row("api_keys.by_id", _key)
async def key_by_id(tx: store.Transaction, account_id: str, key_id: str) -> ApiKey | None: ...
@queries.rows("api_keys.of_account", _key)
async def keys_of_account(
    tx: store.Transaction, account_id: str, *, after: str = "", limit: int = MAX_ROWS
) -> list[ApiKey]: ...
@queries.rows("api_keys.expiring", _key)
async def expiring_keys(tx: store.Transaction, *, after: int, until: int, limit: int) -> list[ApiKey]: ...


async def change_key(tx: store.Transaction, key: ApiKey) -> None:
    """Store the name, the scopes and the limits of a key."""
    row = (key.account_id, key.id, key.name, key.scopes)
    await tx.execute("api_keys.change", *row, *_limit_columns(key.limits))


async def key_budgets(tx: store.Transaction, key_ids: Collection[str]) -> dict[str, callers.KeyBudget]:
    """What these keys may send and have sent, under the lock of their accounts."""
    rows = await tx.fetch_many("api_keys.budgets", [(key_id,) for key_id in sorted(key_ids)])
    return {row[0]: callers.KeyBudget(row[1], row[2], _usage(row[3:]) or callers.KeyUsage()) for row in rows}


async def put_key_usage(tx: store.Transaction, usage: Mapping[tuple[str, str], callers.KeyUsage]) -> None:
    """Store what keys have sent, by key and account."""
    rows = [(*owner, used.day, used.recipients, used.credits) for owner, used in sorted(usage.items())]
    if rows:
        await tx.execute_later("api_keys.put_usage", rows)


# Returns the name of the key, or None when there is no such active key.
@queries.row("api_keys.revoke", str)
async def revoke_key(tx: store.Transaction, account_id: str, key_id: str, *, now: int) -> str | None: ...
@queries.change("api_keys.touch")
async def touch_key(tx: store.Transaction, key_id: str, *, now: int) -> None: ...
# Ten revoked ones count as one.
@queries.count("api_keys.count")
async def count_keys(tx: store.Transaction, account_id: str) -> int: ...
@queries.rows("api_keys.of_creator", _key)
async def keys_of_creator(tx: store.Transaction, account_id: str, user_id: str) -> list[ApiKey]: ...
@queries.change("api_keys.hand_over")
async def hand_over_keys(tx: store.Transaction, account_id: str, user_id: str, *, to: str | None) -> None: ...


# The version of everything that decides who may do what: credentials, keys, tokens, users, accounts, domains.
#
# A revocation increments it in the same transaction; every process compares it before it uses what it has cached.


@queries.count("access_version.version")
async def access_version(tx: store.Transaction) -> int: ...
@queries.change("access_version.bump")
async def bump_access_version(tx: store.Transaction) -> None: ...
