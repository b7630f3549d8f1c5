"""Sender domains, by their A-label names. A name can be claimed by many accounts, but proven by one."""

from dataclasses import dataclass
from typing import Final

from postroad.storage import store

# No list is without a bound; callers page through longer ones.
MOST_ROWS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Domain:
    """A row of `domains`."""

    id: str
    account_id: str
    name: str
    verified_at: int | None
    created_at: int


async def insert(tx: store.Transaction, domain: Domain) -> bool:
    """Register a domain; False when the account has it already, or says it is proven and another has proven it."""
    row = (domain.id, domain.account_id, domain.name, domain.verified_at, domain.created_at)
    return await tx.execute("domains.insert", *row) == 1


async def by_name(tx: store.Transaction, account_id: str, name: str) -> Domain | None:
    """One domain of an account by its name."""
    row = await tx.fetch_one("domains.by_name", account_id, name)
    return Domain(*row) if row else None


async def by_id(tx: store.Transaction, account_id: str, domain_id: str) -> Domain | None:
    """One domain of an account."""
    row = await tx.fetch_one("domains.by_id", account_id, domain_id)
    return Domain(*row) if row else None


async def of_account(
    tx: store.Transaction, account_id: str, *, after: str = "", limit: int = MOST_ROWS
) -> list[Domain]:
    """An account's domains, oldest first."""
    return [Domain(*row) for row in await tx.fetch("domains.of_account", account_id, after, limit)]


async def verified_owner(tx: store.Transaction, name: str) -> str | None:
    """The account that has proven a name."""
    row = await tx.fetch_one("domains.verified_owner", name)
    return str(row[0]) if row else None


async def verify(tx: store.Transaction, account_id: str, domain_id: str, *, now: int) -> bool:
    """Mark a domain as proven; False when it was already."""
    return await tx.execute("domains.verify", account_id, domain_id, now) == 1


async def remove(tx: store.Transaction, account_id: str, domain_id: str) -> bool:
    """Forget a domain."""
    return await tx.execute("domains.remove", account_id, domain_id) == 1
