"""What programs send with: SMTP credentials, and the API keys that are issued under them. Only hashes of secrets are
stored.
"""

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from postroad.model.people import callers
from postroad.storage.engine import store
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


async def insert(tx: store.Transaction, credential: Credential) -> None:
    """Store a credential."""
    row = (credential.id, credential.account_id, credential.name, credential.username)
    await tx.execute("credentials.insert", *row, credential.password_hash, credential.created_at, credential.created_by)


async def by_username(tx: store.Transaction, username: str) -> Credential | None:
    """The credential with this SMTP username."""
    row = await tx.fetch_one("credentials.by_username", username)
    return _credential(row) if row else None


async def by_id(tx: store.Transaction, account_id: str, credential_id: str) -> Credential | None:
    """One credential of an account."""
    row = await tx.fetch_one("credentials.by_id", account_id, credential_id)
    return _credential(row) if row else None


async def of_account(
    tx: store.Transaction, account_id: str, *, after: str = "", limit: int = MAX_ROWS
) -> list[Credential]:
    """An account's credentials, oldest first."""
    return [_credential(row) for row in await tx.fetch("credentials.of_account", account_id, after, limit)]


async def default_of(tx: store.Transaction, account_id: str) -> str | None:
    """The id of the account's first credential, used for callers without one of their own."""
    row = await tx.fetch_one("credentials.default_of", account_id)
    return str(row[0]) if row else None


async def first_live(tx: store.Transaction, account_id: str) -> str | None:
    """The id of the account's oldest credential that is not revoked."""
    row = await tx.fetch_one("credentials.first_live", account_id)
    return str(row[0]) if row else None


async def revoke(tx: store.Transaction, account_id: str, credential_id: str, *, now: int) -> bool:
    """Revoke a credential; False when there is no such active one."""
    return await tx.execute("credentials.revoke", account_id, credential_id, now) == 1


async def touch(tx: store.Transaction, credential_id: str, *, now: int) -> None:
    """Store the time of the last use."""
    await tx.execute("credentials.touch", credential_id, now)


async def count(tx: store.Transaction, account_id: str) -> int:
    """How many credentials an account has; ten revoked ones count as one."""
    row = await tx.fetch_one("credentials.count", account_id)
    return int(row[0]) if row else 0


async def of_creator(tx: store.Transaction, account_id: str, user_id: str) -> list[Credential]:
    """The active credentials that a person created, oldest first."""
    return [_credential(row) for row in await tx.fetch("credentials.of_creator", account_id, user_id)]


async def hand_over(tx: store.Transaction, account_id: str, user_id: str, *, to: str | None) -> None:
    """Let another person answer for the active credentials that one created, or nobody."""
    await tx.execute("credentials.hand_over", account_id, user_id, to)


def _credential(row: store.Row) -> Credential:
    return dataclasses.replace(Credential(*row[:8]), creator=users.creator_of(row[8:]))


# Every list has a limit; callers page through longer ones.
MAX_KEYS: Final = 10_000


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


async def insert_key(tx: store.Transaction, key: ApiKey, *, key_hash: bytes) -> None:
    """Store a key."""
    row = (key.id, key.account_id, key.credential_id, key.name, key_hash, key.hint, key.scopes, key.created_at)
    await tx.execute("api_keys.insert", *row, key.created_by, *_limit_columns(key.limits))


async def key_by_hash(tx: store.Transaction, key_hash: bytes) -> ApiKey | None:
    """The key with this hash; revoked when its credential is."""
    row = await tx.fetch_one("api_keys.by_hash", key_hash)
    return _key(row) if row else None


async def key_by_id(tx: store.Transaction, account_id: str, key_id: str) -> ApiKey | None:
    """A key of an account; revoked when its credential is."""
    row = await tx.fetch_one("api_keys.by_id", account_id, key_id)
    return _key(row) if row else None


async def keys_of_account(
    tx: store.Transaction, account_id: str, *, after: str = "", limit: int = MAX_KEYS
) -> list[ApiKey]:
    """An account's keys, oldest first."""
    return [_key(row) for row in await tx.fetch("api_keys.of_account", account_id, after, limit)]


async def expiring_keys(tx: store.Transaction, *, after: int, until: int, limit: int) -> list[ApiKey]:
    """Keys of all accounts that expire in this time, and are not revoked."""
    return [_key(row) for row in await tx.fetch("api_keys.expiring", after, until, limit)]


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


async def revoke_key(tx: store.Transaction, account_id: str, key_id: str, *, now: int) -> str | None:
    """Revoke a key; returns its name, or None when there is no such active key."""
    rows = await tx.fetch("api_keys.revoke", account_id, key_id, now)
    return str(rows[0][0]) if rows else None


async def touch_key(tx: store.Transaction, key_id: str, *, now: int) -> None:
    """Store the time of the last use."""
    await tx.execute("api_keys.touch", key_id, now)


async def count_keys(tx: store.Transaction, account_id: str) -> int:
    """How many keys an account has; ten revoked ones count as one."""
    row = await tx.fetch_one("api_keys.count", account_id)
    return int(row[0]) if row else 0


def _key(row: store.Row) -> ApiKey:
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


async def keys_of_creator(tx: store.Transaction, account_id: str, user_id: str) -> list[ApiKey]:
    """The active keys that a person created, oldest first."""
    return [_key(row) for row in await tx.fetch("api_keys.of_creator", account_id, user_id)]


async def hand_over_keys(tx: store.Transaction, account_id: str, user_id: str, *, to: str | None) -> None:
    """Let another person answer for the active keys that one created, or nobody."""
    await tx.execute("api_keys.hand_over", account_id, user_id, to)


# The version of everything that decides who may do what: credentials, keys, tokens, users, accounts, domains.
#
# A revocation increments it in the same transaction; every process compares it before it uses what it has cached.


async def access_version(tx: store.Transaction) -> int:
    """The current version."""
    row = await tx.fetch_one("access_version.version")
    return int(row[0]) if row else 0


async def bump_access_version(tx: store.Transaction) -> None:
    """Invalidate the caches of every process."""
    await tx.execute("access_version.bump")
