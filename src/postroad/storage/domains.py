"""Sender domains, by their A-label names. Many accounts can register a name, but only one can verify it."""

from dataclasses import dataclass
from typing import Final

from postroad.storage import store

# Every list has a limit; callers page through longer ones.
MAX_ROWS: Final = 10_000
# Who verified a domain.
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
    return_path_domain: str = ""


async def insert(tx: store.Transaction, domain: Domain) -> bool:
    """Register a domain; False when the account has it already, or it is verified here and by another account."""
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
    """The account that has verified a name."""
    row = await tx.fetch_one("domains.verified_owner", name)
    return str(row[0]) if row else None


async def verify(tx: store.Transaction, account_id: str, domain_id: str, *, by: str, now: int) -> bool:
    """Mark a domain as verified by `OPERATOR` or `DNS`; False when it was already, by the same or by an operator."""
    return await tx.execute("domains.verify", account_id, domain_id, now, by) == 1


async def set_warm(tx: store.Transaction, account_id: str, domain_id: str, *, warm: bool) -> bool:
    """Set whether a domain skips the warm-up; False when there is no such domain."""
    return await tx.execute("domains.set_warm", account_id, domain_id, int(warm)) == 1


async def unverify(tx: store.Transaction, account_id: str, domain_id: str, *, failing_before: int) -> bool:
    """Unverify a domain that DNS verified and that has failed since before that time; False when it does not apply."""
    return await tx.execute("domains.unverify", account_id, domain_id, failing_before) == 1


async def claim_due(tx: store.Transaction, *, now: int, until: int, limit: int) -> list[Domain]:
    """Domains whose DNS check is due, longest due first; they are claimed until `until`."""
    return [Domain(*row) for row in await tx.fetch("domains.claim_due", now, until, limit)]


async def record_check(
    tx: store.Transaction,
    account_id: str,
    domain_id: str,
    *,
    check_at: int,
    failing_since: int | None,
    return_path_domain: str,
) -> bool:
    """Store what follows from a DNS check; False when the domain is gone."""
    row = (account_id, domain_id, check_at, failing_since, return_path_domain)
    return await tx.execute("domains.record_check", *row) == 1


async def schedule_check(tx: store.Transaction, account_id: str, domain_id: str, *, check_at: int) -> None:
    """Store the time of the next DNS check."""
    await tx.execute("domains.schedule_check", account_id, domain_id, check_at)


async def mark_check_requested(
    tx: store.Transaction, account_id: str, domain_id: str, *, now: int, not_since: int
) -> bool:
    """Note that a DNS check is requested now; False when there is no such domain, or one was requested since then."""
    return await tx.execute("domains.mark_check_requested", account_id, domain_id, now, not_since) == 1


async def check_requested_at(tx: store.Transaction, account_id: str, domain_id: str) -> int | None:
    """When a DNS check was last requested."""
    row = await tx.fetch_one("domains.check_requested_at", account_id, domain_id)
    return int(row[0]) if row else None


async def remove(tx: store.Transaction, account_id: str, domain_id: str) -> bool:
    """Delete a domain."""
    return await tx.execute("domains.remove", account_id, domain_id) == 1


async def count(tx: store.Transaction, account_id: str) -> int:
    """How many domains an account has."""
    row = await tx.fetch_one("domains.count", account_id)
    return int(row[0]) if row else 0
