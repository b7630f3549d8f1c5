"""Sends of API keys that wait for a person, with what was asked for, until they are approved, rejected or too old."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from postroad.storage.engine import queries, store

SWEEP_ROWS: Final = 100


class State(StrEnum):
    """`approving` is between the decision and the result: it can only be continued."""

    PENDING = "pending"
    APPROVING = "approving"
    APPROVED = "approved"
    REJECTED = "rejected"


class Approval(msgspec.Struct, frozen=True):
    """A row of `approvals`. `identity` is what the idempotency key belongs to."""

    id: str
    account_id: str
    key_id: str
    identity: str
    idempotency_key: str
    body_hash: bytes
    is_batch: bool
    is_test: bool
    body: bytes
    recipients: int
    request_id: str
    state: str
    created_at: int


def _approval(*row: Any) -> Approval:
    stored = Approval(*row)
    return msgspec.structs.replace(
        stored,
        body_hash=bytes(stored.body_hash),
        is_batch=bool(stored.is_batch),
        is_test=bool(stored.is_test),
        body=bytes(stored.body or b""),
    )


async def insert(tx: store.Transaction, approval: Approval) -> None:
    """Store a send, unless its idempotency key is known."""
    row = msgspec.structs.astuple(approval)
    await tx.execute("approvals.insert", *(int(value) if isinstance(value, bool) else value for value in row))


@queries.row("approvals.by_key", _approval)
async def by_key(tx: store.Transaction, identity: str, idempotency_key: str) -> Approval | None: ...
@queries.row("approvals.by_id", _approval)
async def by_id(tx: store.Transaction, account_id: str, approval_id: str) -> Approval | None: ...
# Without their bodies, which may be large.
@queries.rows("approvals.of_account", _approval)
async def of_account(tx: store.Transaction, account_id: str, *, limit: int) -> list[Approval]: ...


async def count_pending(tx: store.Transaction, account_id: str, key_id: str, *, after: int) -> tuple[int, int]:
    """How many sends of an account, and how many of one of its keys, wait since a time after this one."""
    ((of_account, of_key),) = await tx.fetch("approvals.count", account_id, key_id, State.PENDING, after)
    return int(of_account), int(of_key)


async def set_state(
    tx: store.Transaction, account_id: str, approval_id: str, state: State, *, among: Sequence[State]
) -> bool:
    """Change the state from one of these, at most three; returns whether it was one of them."""
    return await tx.execute("approvals.set_state", account_id, approval_id, state, *_three(among)) == 1


async def decide(
    tx: store.Transaction, account_id: str, approval_id: str, state: State, *, among: Sequence[State]
) -> bool:
    """The same for good, and delete what was asked for: it may hold secrets, and it may be large."""
    return await tx.execute("approvals.decide", account_id, approval_id, state, b"", *_three(among)) == 1


def _three(among: Sequence[State]) -> Sequence[State]:
    """As many parameters as the queries have."""
    return (*among, *among, *among)[:3]


async def sweep_bodies(tx: store.Transaction, *, before: int) -> int:
    """Delete what up to SWEEP_ROWS sends from before a time asked for; returns how many."""
    return await tx.execute("approvals.sweep_bodies", before, b"", SWEEP_ROWS)


@queries.changes("approvals.sweep")
async def sweep(tx: store.Transaction, *, before: int, limit: int = SWEEP_ROWS) -> int: ...
