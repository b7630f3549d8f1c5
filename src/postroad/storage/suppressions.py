"""Addresses that an account's mail is not sent to, because they do not exist or do not want it. The first reason stays.

An address is known by its key: the address without regard to case.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from postroad.storage import store

# The account, and the address as a key.
SuppressionKey = tuple[str, str]


class Source(StrEnum):
    """How an address came onto the list."""

    BOUNCE = "bounce"
    LATE_BOUNCE = "late_bounce"
    COMPLAINT = "complaint"
    OPERATOR = "operator"
    ACCOUNT = "account"
    IMPORT = "import"


class Suppression(msgspec.Struct, frozen=True):
    """A row of `suppressions`: in `reason` and `smtp_code` a destination's reply, if one caused it, and its message."""

    account_id: str
    email_key: str
    source: str
    reason: str
    smtp_code: int | None
    message_id: str | None
    created_at: int


async def find(tx: store.Transaction, pairs: Sequence[SuppressionKey]) -> dict[SuppressionKey, Suppression]:
    """Those among these (account, email key) pairs that are on the list."""
    rows = await tx.fetch_many("suppressions.find", pairs)
    return {(row[0], row[1]): Suppression(*row) for row in rows}


async def add(tx: store.Transaction, suppressions: Iterable[Suppression]) -> list[SuppressionKey]:
    """Put addresses onto the list; those that are there already stay as they are. Returns those that are new."""
    rows = {(each.account_id, each.email_key): msgspec.structs.astuple(each) for each in suppressions}
    # In one order everywhere, so that two hosts that add the same addresses wait instead of dead-locking.
    added = await tx.fetch_many("suppressions.add", [rows[place] for place in sorted(rows)])
    return [(row[0], row[1]) for row in added]


async def remove(tx: store.Transaction, account_id: str, email_key: str) -> bool:
    """Take an address off the list; False when it was not there."""
    return await tx.execute("suppressions.remove", account_id, email_key) == 1


async def of_account(
    tx: store.Transaction, account_id: str, *, after: str, limit: int, source: str | None = None
) -> list[Suppression]:
    """An account's list in the order of the addresses, after one of them; the first come after the empty text."""
    rows = await tx.fetch("suppressions.of_account", account_id, after, limit, source)
    return [Suppression(*row) for row in rows]
