"""Recipients that bounced or failed, by account, hour (UTC), mailbox provider and reason.

The same recipients as in `hourly_counts`, written in the same transactions, so the sums of both agree. Delivered mail
writes nothing here.
"""

from collections.abc import Sequence

import msgspec

from postroad.storage import store

SWEEP_ROWS = 1_000


class FailureIncrement(msgspec.Struct, frozen=True):
    """What to add to an hour; a key occurs once in a call of `add`."""

    account_id: str
    hour: int
    provider: str
    reason: str
    bounced: int
    failed: int


class FailureTotal(msgspec.Struct, frozen=True):
    """The counts of a provider and a reason in one hour."""

    hour: int
    provider: str
    reason: str
    bounced: int
    failed: int


async def add(tx: store.Transaction, rows: Sequence[FailureIncrement]) -> None:
    """Add to the counts, in one order everywhere."""
    ordered = sorted(msgspec.structs.astuple(row) for row in rows)
    await tx.execute_later("failure_counts.add", ordered)


async def between(tx: store.Transaction, account_id: str, *, from_hour: int, until_hour: int) -> list[FailureTotal]:
    """The counts of an account between two hours."""
    rows = await tx.fetch("failure_counts.between", account_id, from_hour, until_hour)
    return [FailureTotal(*row) for row in rows]


async def by_provider(tx: store.Transaction, reason: str, *, since_hour: int) -> dict[str, int]:
    """How many recipients of all accounts were refused for a reason."""
    found = await tx.fetch("failure_counts.by_provider", since_hour, reason)
    return {str(provider): int(recipients) for provider, recipients in found}


async def sweep(tx: store.Transaction, *, until_hour: int) -> int:
    """Delete up to SWEEP_ROWS rows of hours up to this one; returns how many."""
    return await tx.execute("failure_counts.sweep", until_hour, SWEEP_ROWS)
