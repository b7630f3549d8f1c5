"""Accounts and their two balances.

A balance changes only together with a ledger entry of the same transaction (see `ledger.py`); `lock` comes first
wherever a decision depends on a balance or a status.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from postroad.storage import store

ACTIVE = "active"
SUSPENDED = "suspended"


@dataclass(frozen=True, slots=True)
class Account:
    """A row of `accounts`."""

    id: str
    name: str
    status: str
    suspended_reason: str | None
    available: int
    reserved: int
    created_at: int


async def insert(tx: store.Transaction, account_id: str, *, name: str, now: int) -> None:
    """Make an account without credits."""
    await tx.execute("accounts.insert", account_id, name, now)


async def by_id(tx: store.Transaction, account_id: str) -> Account | None:
    """One account."""
    row = await tx.fetch_one("accounts.by_id", account_id)
    return Account(*row) if row else None


async def by_name(tx: store.Transaction, name: str, *, limit: int) -> list[Account]:
    """The accounts that people call so; names need not be unique."""
    return [Account(*row) for row in await tx.fetch("accounts.by_name", name, limit)]


async def page(tx: store.Transaction, *, after: str, limit: int) -> list[Account]:
    """Accounts in order of their making."""
    return [Account(*row) for row in await tx.fetch("accounts.page", after, limit)]


async def set_status(tx: store.Transaction, account_id: str, *, status: str, reason: str | None) -> bool:
    """Suspend or resume; False when there is no such account."""
    return await tx.execute("accounts.set_status", account_id, status, reason) == 1


async def lock(tx: store.Transaction, account_ids: Iterable[str]) -> Mapping[str, Account]:
    """The accounts by id, held until the transaction ends."""
    rows = await tx.fetch_many("accounts.lock", [(account_id,) for account_id in sorted(set(account_ids))])
    return {row[0]: Account(*row) for row in rows}
