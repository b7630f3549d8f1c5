"""The audit log of an account: who did what. An entry is written in the transaction of its change and never updated."""

from typing import Final

import msgspec

from postroad.storage.engine import queries, store

ANYTHING: Final = "%"


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
    await tx.execute("audit_log.insert", *msgspec.structs.astuple(entry))


class Patterns(msgspec.Struct, frozen=True):
    """Patterns of LIKE, with `!` before what is meant literally; those of actor and subject in lower case."""

    actor: str = ANYTHING
    action: str = ANYTHING
    subject: str = ANYTHING


EVERYTHING: Final = Patterns()


async def page(
    tx: store.Transaction,
    account_id: str,
    *,
    before: str,
    limit: int,
    after: str = "",
    patterns: Patterns = EVERYTHING,
) -> list[Entry]:
    """An account's entries between two cursors that match, newest first."""
    rows = await tx.fetch("audit_log.page", account_id, before, after, limit, *msgspec.structs.astuple(patterns))
    return [Entry(*row) for row in rows]


async def floor(tx: store.Transaction, account_id: str, *, before: str, after: str, examined: int) -> str | None:
    """The id of the last of so many entries; None if there are fewer."""
    row = await tx.fetch_one("audit_log.floor", account_id, before, after, examined - 1)
    return row[0] if row else None


class Between(msgspec.Struct, frozen=True):
    """The times and ids between two cursors: an id is as old as its entry."""

    latest: int
    earliest: int
    before: str
    after: str


async def page_of_all(
    tx: store.Transaction, between: Between, *, limit: int, patterns: Patterns = EVERYTHING
) -> list[Entry]:
    """The entries of all accounts between two cursors that match, newest first."""
    places = msgspec.structs.astuple(between)
    rows = await tx.fetch("audit_log.page_of_all", *places, limit, *msgspec.structs.astuple(patterns))
    return [Entry(*row) for row in rows]


async def floor_of_all(tx: store.Transaction, between: Between, *, examined: int) -> str | None:
    """The id of the last of so many entries of all accounts; None if there are fewer."""
    row = await tx.fetch_one("audit_log.floor_of_all", *msgspec.structs.astuple(between), examined - 1)
    return row[0] if row else None


# Delete up to SWEEP_ROWS entries from before this time; returns how many.
@queries.changes("audit_log.sweep")
async def sweep(tx: store.Transaction, *, before: int, limit: int = store.SWEEP_ROWS) -> int: ...
