"""The audit log of an account: who did what. An entry is written in the transaction of its change and never updated."""

from typing import Final

import msgspec

from postroad.storage import store

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


class Entry(msgspec.Struct, frozen=True):
    """A row of `audit_log`. `actor` is the name at that time; the user of `user_id` may have been removed since."""

    account_id: str
    id: str
    actor_kind: str
    user_id: str | None
    actor: str
    action: str
    subject: str
    detail: str
    request_id: str
    client_address: str
    created_at: int


async def insert(tx: store.Transaction, entry: Entry) -> None:
    """Store an entry."""
    await tx.execute("audit_log.insert", *msgspec.structs.astuple(entry))


async def page(tx: store.Transaction, account_id: str, *, before: str, limit: int) -> list[Entry]:
    """An account's entries, newest first."""
    rows = await tx.fetch("audit_log.page", account_id, before, limit)
    return [Entry(*row) for row in rows]


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete up to SWEEP_ROWS entries from before this time; returns how many."""
    return await tx.execute("audit_log.sweep", before, SWEEP_ROWS)
