"""The journal of an account: who did what. Entries are written with the change that they tell of, and never changed."""

from typing import Final

import msgspec

from postroad.storage import store

# Few enough that a send never waits for a sweep longer than for another send.
SWEEP_ROWS: Final = 1_000


class Entry(msgspec.Struct, frozen=True):
    """A row of `journal`. `actor` is what the person was called then; `user_id` is theirs, who may be gone by now."""

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
    """Write an entry."""
    await tx.execute("journal.insert", *msgspec.structs.astuple(entry))


async def page(tx: store.Transaction, account_id: str, *, before: str, limit: int) -> list[Entry]:
    """An account's entries, newest first."""
    rows = await tx.fetch("journal.page", account_id, before, limit)
    return [Entry(*row) for row in rows]


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Forget up to SWEEP_ROWS entries of before this time; returns how many."""
    return await tx.execute("journal.sweep", before, SWEEP_ROWS)
