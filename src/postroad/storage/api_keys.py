"""API keys: stored as the SHA-256 of a random secret, issued under an SMTP credential."""

from dataclasses import dataclass
from typing import Final

from postroad.storage import store

# Every list has a limit; callers page through longer ones.
MAX_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A row of `api_keys` without its hash. `scopes` are words joined by a space."""

    id: str
    account_id: str
    credential_id: str
    name: str
    hint: str
    scopes: str
    created_at: int
    last_used_at: int | None
    revoked_at: int | None


async def insert(tx: store.Transaction, key: ApiKey, *, key_hash: bytes) -> None:
    """Store a key."""
    row = (key.id, key.account_id, key.credential_id, key.name, key_hash, key.hint, key.scopes, key.created_at)
    await tx.execute("api_keys.insert", *row)


async def by_hash(tx: store.Transaction, key_hash: bytes) -> ApiKey | None:
    """The key with this hash; revoked when its credential is."""
    row = await tx.fetch_one("api_keys.by_hash", key_hash)
    return ApiKey(*row) if row else None


async def of_account(tx: store.Transaction, account_id: str, *, after: str = "", limit: int = MAX_ROWS) -> list[ApiKey]:
    """An account's keys, oldest first."""
    return [ApiKey(*row) for row in await tx.fetch("api_keys.of_account", account_id, after, limit)]


async def revoke(tx: store.Transaction, account_id: str, key_id: str, *, now: int) -> str | None:
    """Revoke a key; returns its name, or None when there is no such active key."""
    rows = await tx.fetch("api_keys.revoke", account_id, key_id, now)
    return str(rows[0][0]) if rows else None


async def touch(tx: store.Transaction, key_id: str, *, now: int) -> None:
    """Store the time of the last use."""
    await tx.execute("api_keys.touch", key_id, now)


async def count(tx: store.Transaction, account_id: str) -> int:
    """How many keys an account has; ten revoked ones count as one."""
    row = await tx.fetch_one("api_keys.count", account_id)
    return int(row[0]) if row else 0
