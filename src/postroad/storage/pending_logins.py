"""Logins that wait for their second factor. Only the hash of a token is stored."""

from dataclasses import astuple, dataclass
from typing import Final

from postroad.storage import store

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A row of `pending_logins` without its token. `methods` are those that succeeded, separated by spaces.

    `invitation` is the hash of the link that the login then joins an account with.
    """

    login_id: str
    epoch: int
    methods: str
    expires_at: int
    invitation: bytes | None = None


async def insert(tx: store.Transaction, token_hash: bytes, pending: PendingLogin) -> None:
    """Store a login whose password was right."""
    await tx.execute("pending_logins.insert", token_hash, *astuple(pending))


async def find(tx: store.Transaction, token_hash: bytes) -> PendingLogin | None:
    """The pending login of a token, expired or not."""
    row = await tx.fetch_one("pending_logins.find", token_hash)
    return PendingLogin(*row) if row else None


async def consume(tx: store.Transaction, token_hash: bytes) -> PendingLogin | None:
    """The same, and delete it: only one of several concurrent callers gets it."""
    rows = await tx.fetch("pending_logins.consume", token_hash)
    return PendingLogin(*rows[0]) if rows else None


async def sweep(tx: store.Transaction, *, now: int) -> int:
    """Delete up to SWEEP_ROWS that have expired; returns how many."""
    return await tx.execute("pending_logins.sweep", now, SWEEP_ROWS)
