"""The suppression list of an account: addresses that its mail is not sent to. The first reason is kept.

An address is identified by its key, which ignores case.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from postroad.storage.engine import queries, store

# The account, and the address as a key.
SuppressionKey = tuple[str, str]


class Source(StrEnum):
    """Why an address is on the list."""

    BOUNCE = "bounce"
    LATE_BOUNCE = "late_bounce"
    COMPLAINT = "complaint"
    OPERATOR = "operator"
    ACCOUNT = "account"
    IMPORT = "import"


class Suppression(msgspec.Struct, frozen=True):
    """A row of `suppressions`. `reason` and `smtp_code` hold the reply that caused it, and `message_id` its message."""

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
    """Add addresses; those that are on the list already are not changed. Returns the new ones."""
    rows = {(each.account_id, each.email_key): msgspec.structs.astuple(each) for each in suppressions}
    # The same order everywhere, so that two hosts that add the same addresses do not deadlock.
    added = await tx.fetch_many("suppressions.add", [rows[place] for place in sorted(rows)])
    return [(row[0], row[1]) for row in added]


# Remove an address; False when it was not on the list.
@queries.changed("suppressions.remove")
async def remove(tx: store.Transaction, account_id: str, email_key: str) -> bool: ...
# An account's list, ordered by address, after the address `after`.
@queries.rows("suppressions.of_account", Suppression)
async def of_account(
    tx: store.Transaction, account_id: str, *, after: str, limit: int, source: str | None = None
) -> list[Suppression]: ...
@queries.count("suppressions.count")
async def count(tx: store.Transaction, account_id: str) -> int: ...
