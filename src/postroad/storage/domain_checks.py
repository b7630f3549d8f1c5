"""The results of the last DNS check of a sender domain; one row for each purpose."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class Check(msgspec.Struct, frozen=True):
    """A row of `domain_checks`. `found` are the published records of the same kind, one on each line."""

    account_id: str
    domain_id: str
    purpose: str
    state: str
    detail: str
    found: str
    checked_at: int


async def put(tx: store.Transaction, checks: Sequence[Check]) -> None:
    """Store the results of a check."""
    await tx.execute_many("domain_checks.put", [msgspec.structs.astuple(check) for check in checks])


async def of_domain(tx: store.Transaction, account_id: str, domain_id: str) -> dict[str, Check]:
    """The last results of a domain, by purpose."""
    checks = [Check(*row) for row in await tx.fetch("domain_checks.of_domain", account_id, domain_id)]
    return {check.purpose: check for check in checks}


async def remove(tx: store.Transaction, account_id: str, domain_id: str) -> None:
    """Delete the results of a domain."""
    await tx.execute("domain_checks.remove", account_id, domain_id)
