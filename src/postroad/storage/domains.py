"""Sender domains, by their A-label names. A name can be claimed by many accounts, but proven by one."""

from dataclasses import dataclass
from typing import Final

from postroad.storage import store

# No list is without a bound; callers page through longer ones.
MAX_ROWS: Final = 10_000
# Whose word it is that a domain is an account's.
OPERATOR: Final = "operator"
DNS: Final = "dns"


@dataclass(frozen=True, slots=True)
class Domain:
    """A row of `domains`."""

    id: str
    account_id: str
    name: str
    verified_at: int | None
    created_at: int
    warm: int = 0
    verified_by: str | None = None
    failing_since: int | None = None
    check_at: int = 0


async def insert(tx: store.Transaction, domain: Domain) -> bool:
    """Register a domain; False when the account has it already, or says it is proven and another has proven it."""
    row = (domain.id, domain.account_id, domain.name, domain.verified_at, domain.created_at, domain.verified_by)
    return await tx.execute("domains.insert", *row) == 1


async def by_name(tx: store.Transaction, account_id: str, name: str) -> Domain | None:
    """One domain of an account by its name."""
    row = await tx.fetch_one("domains.by_name", account_id, name)
    return Domain(*row) if row else None


async def by_id(tx: store.Transaction, account_id: str, domain_id: str) -> Domain | None:
    """One domain of an account."""
    row = await tx.fetch_one("domains.by_id", account_id, domain_id)
    return Domain(*row) if row else None


async def of_account(tx: store.Transaction, account_id: str, *, after: str = "", limit: int = MAX_ROWS) -> list[Domain]:
    """An account's domains, oldest first."""
    return [Domain(*row) for row in await tx.fetch("domains.of_account", account_id, after, limit)]


async def verified_owner(tx: store.Transaction, name: str) -> str | None:
    """The account that has proven a name."""
    row = await tx.fetch_one("domains.verified_owner", name)
    return str(row[0]) if row else None


async def verify(tx: store.Transaction, account_id: str, domain_id: str, *, by: str, now: int) -> bool:
    """Mark a domain as proven, by `OPERATOR` or `DNS`; False when it was already, by the same or by an operator."""
    return await tx.execute("domains.verify", account_id, domain_id, now, by) == 1


async def set_warm(tx: store.Transaction, account_id: str, domain_id: str, *, warm: bool) -> bool:
    """Say whether a domain may do without warm-up; False when there is no such domain."""
    return await tx.execute("domains.set_warm", account_id, domain_id, int(warm)) == 1


async def unverify(tx: store.Transaction, account_id: str, domain_id: str, *, failing_before: int) -> bool:
    """Take back what DNS has proven and denies since before that time; False when it is not so."""
    return await tx.execute("domains.unverify", account_id, domain_id, failing_before) == 1


async def claim_due(tx: store.Transaction, *, now: int, until: int, limit: int) -> list[Domain]:
    """Domains that DNS is to be asked about, the most patient first; nobody else gets them until then."""
    return [Domain(*row) for row in await tx.fetch("domains.claim_due", now, until, limit)]


async def checked(
    tx: store.Transaction, account_id: str, domain_id: str, *, check_at: int, failing_since: int | None
) -> bool:
    """Note when DNS is asked next, and since when it says no; False when the domain is gone."""
    return await tx.execute("domains.checked", account_id, domain_id, check_at, failing_since) == 1


async def mark_asked(tx: store.Transaction, account_id: str, domain_id: str, *, now: int, not_since: int) -> bool:
    """Note that somebody has DNS asked now; False when there is no such domain, or somebody has since then."""
    return await tx.execute("domains.mark_asked", account_id, domain_id, now, not_since) == 1


async def asked_at(tx: store.Transaction, account_id: str, domain_id: str) -> int | None:
    """When somebody last had DNS asked."""
    row = await tx.fetch_one("domains.asked_at", account_id, domain_id)
    return int(row[0]) if row else None


async def remove(tx: store.Transaction, account_id: str, domain_id: str) -> bool:
    """Forget a domain."""
    return await tx.execute("domains.remove", account_id, domain_id) == 1
