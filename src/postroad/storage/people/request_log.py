"""Requests of an account that were refused or failed, and changes by its keys. Written in batches, never updated."""

from collections.abc import Collection

import msgspec

from postroad.storage.engine import queries, store


class Entry(msgspec.Struct, frozen=True):
    """A row of `request_log`. `caller_id` is that of an API key, an SMTP credential or a user."""

    account_id: str
    id: str
    caller_id: str
    method: str
    path: str
    status: int
    code: str
    error: str
    client_address: str
    body_size: int
    body: bytes
    skipped: int
    created_at: int


class NamedEntry(Entry, frozen=True):
    """A row with the name of the caller; empty for a user who was removed."""

    caller: str


async def insert(tx: store.Transaction, entries: Collection[Entry], *, rows: int, octets: int) -> None:
    """Add requests. Of each account concerned, the newest are kept: so many, with so many octets of bodies."""
    await tx.execute_many("request_log.insert", sorted(msgspec.structs.astuple(entry) for entry in entries))
    for account_id in sorted({entry.account_id for entry in entries}):
        await tx.execute("request_log.trim", account_id, rows, octets)


# Those of an account between two cursors, with a status from one to below another, of one caller or, if empty, of all.
@queries.rows("request_log.page", NamedEntry)
async def page(
    tx: store.Transaction,
    account_id: str,
    *,
    before: str,
    after: str,
    status: int,
    below: int,
    caller_id: str,
    limit: int,
) -> list[NamedEntry]: ...
# The ids of the callers and their names.
@queries.rows("request_log.callers", lambda *row: row)
async def callers_of(tx: store.Transaction, account_id: str) -> list[tuple[str, str]]: ...
@queries.row("request_log.by_id", NamedEntry)
async def by_id(tx: store.Transaction, account_id: str, request_id: str) -> NamedEntry | None: ...


# Delete up to SWEEP_ROWS requests from before this time; returns how many.
@queries.changes("request_log.sweep")
async def sweep(tx: store.Transaction, *, before: int, limit: int = store.SWEEP_ROWS) -> int: ...
