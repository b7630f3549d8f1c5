"""The ledger: every change of a balance, with its reason.

The entries of an account always sum to its balances. `record` is the only function that moves credits, and it writes
entry and balance together. `postroad verify` checks this for the whole database.
"""

import collections
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from postroad.storage import store


class Kind(StrEnum):
    """The reason of an entry."""

    GRANT = "grant"
    RESERVE = "reserve"
    SETTLE = "settle"
    RELEASE = "release"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `ledger`: what was added to the available and to the reserved credits."""

    id: str
    account_id: str
    kind: str
    available: int
    reserved: int
    message_id: str | None = None
    note: str | None = None
    created_at: int


async def record(tx: store.Transaction, entries: Sequence[Entry]) -> None:
    """Store entries and change the balances by their sums."""
    sums: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    for entry in entries:
        sums[entry.account_id][0] += entry.available
        sums[entry.account_id][1] += entry.reserved
    await tx.execute_later("ledger.insert", [msgspec.structs.astuple(entry) for entry in entries])
    await tx.execute_later(
        "accounts.move_credits", [(account_id, *moves) for account_id, moves in sorted(sums.items())]
    )


async def page_from(tx: store.Transaction, account_id: str, *, after: str, limit: int) -> list[Entry]:
    """An account's entries, oldest first."""
    return _entries(await tx.fetch("ledger.page_from", account_id, after, limit))


async def page(tx: store.Transaction, account_id: str, *, before: str, limit: int) -> list[Entry]:
    """An account's entries, newest first."""
    return _entries(await tx.fetch("ledger.page", account_id, before, limit))


def _entries(rows: Sequence[store.Row]) -> list[Entry]:
    return [Entry(**dict(zip(Entry.__struct_fields__, row, strict=True))) for row in rows]
