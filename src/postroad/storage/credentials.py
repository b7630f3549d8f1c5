"""SMTP credentials: a username and the hash of a generated password."""

import dataclasses
from dataclasses import dataclass, field
from typing import Final

from postroad.storage import store, users

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
