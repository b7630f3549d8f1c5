"""What DNS last said of the records that a sender domain should have; one row for each purpose."""

from collections.abc import Sequence

import msgspec

from postroad.storage import store


class Check(msgspec.Struct, frozen=True):
    """A row of `domain_checks`. `found` are the texts of the same kind that stand there, one on each line."""

    account_id: str
    domain_id: str
    purpose: str
    state: str
    detail: str
    found: str
    checked_at: int


async def put(tx: store.Transaction, checks: Sequence[Check]) -> None:
    """Write what DNS says now."""
    await tx.execute_many("domain_checks.put", [msgspec.structs.astuple(check) for check in checks])


async def of_domain(tx: store.Transaction, account_id: str, domain_id: str) -> dict[str, Check]:
    """What DNS last said of a domain, by purpose."""
    checks = [Check(*row) for row in await tx.fetch("domain_checks.of_domain", account_id, domain_id)]
    return {check.purpose: check for check in checks}


async def remove(tx: store.Transaction, account_id: str, domain_id: str) -> None:
    """Forget what DNS said of a domain."""
    await tx.execute("domain_checks.remove", account_id, domain_id)
