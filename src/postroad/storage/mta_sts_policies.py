"""The MTA-STS policies of destinations, by domain: fetched by one process, known to all, also after a restart."""

from typing import Final

import msgspec

from postroad.storage import store

SWEEP_ROWS: Final = 1_000
# Some 50 MB of ordinary policies; those that were not fetched for the longest time are removed first.
MAX_POLICIES: Final = 100_000


class StoredPolicy(msgspec.Struct, frozen=True):
    """A row of `mta_sts_policies`. `policy` is its text."""

    domain: str
    policy_id: str
    policy: str
    fetched_at: int
    valid_until: int


async def put(tx: store.Transaction, policy: StoredPolicy) -> None:
    """Store a policy that was fetched."""
    await tx.execute("mta_sts_policies.put", *msgspec.structs.astuple(policy))


async def find(tx: store.Transaction, domain: str, *, now: int) -> StoredPolicy | None:
    """The policy of a domain, unless it has expired."""
    row = await tx.fetch_one("mta_sts_policies.find", domain, now)
    return None if row is None else StoredPolicy(*row)


async def sweep(tx: store.Transaction, *, now: int, most: int = MAX_POLICIES) -> int:
    """Delete up to SWEEP_ROWS policies that have expired or are too many; returns how many."""
    expired = await tx.execute("mta_sts_policies.sweep", now, SWEEP_ROWS)
    return expired + await tx.execute("mta_sts_policies.trim", most, SWEEP_ROWS - expired)
