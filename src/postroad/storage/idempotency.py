"""Idempotency keys: stored in the transaction of their message."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from postroad.storage import store

Pair = tuple[str, str]
# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS = 1_000


class NewKey(msgspec.Struct, frozen=True):
    """A key of an accepted message, or of the first one of a batch, with the response to the batch."""

    credential_id: str
    key: str
    account_id: str
    body_hash: bytes
    message_id: str
    expires_at: int
    response: bytes | None = None


class StoredKey(msgspec.Struct, frozen=True):
    """A used key: the hash of the request body, the message that it created, and the response if it was a batch."""

    body_hash: bytes
    message_id: str
    response: bytes | None = None


async def find(tx: store.Transaction, pairs: Iterable[Pair], *, now: int) -> Mapping[Pair, StoredKey]:
    """The keys among these (credential, key) pairs that are still valid."""
    rows = await tx.fetch_many("idempotency.find", [(*scope, now) for scope in pairs])
    return {(row[0], row[1]): StoredKey(bytes(row[2]), row[3], row[4]) for row in rows}


async def insert(tx: store.Transaction, keys: Sequence[NewKey]) -> None:
    """Store the keys of accepted messages."""
    await tx.execute_later("idempotency.insert", [msgspec.structs.astuple(key) for key in keys])


async def sweep(tx: store.Transaction, *, now: int) -> int:
    """Delete up to SWEEP_ROWS expired keys; returns how many."""
    return await tx.execute("idempotency.sweep", now, SWEEP_ROWS)
