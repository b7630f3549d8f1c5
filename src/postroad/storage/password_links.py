"""One-time links to set a password. Only the hash of a token is stored."""

from dataclasses import dataclass, field
from typing import Final

from postroad.storage import store

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Link:
    """A row of `password_links`. One that an operator made acts on the login, in all its accounts.

    A recovery link also removes second factors.
    """

    token_hash: bytes = field(repr=False)
    account_id: str
    user_id: str
    expires_at: int
    by_operator: int
    is_recovery: int = 0


async def replace(tx: store.Transaction, link: Link) -> None:
    """Create a link; earlier links of the user stop working."""
    await remove(tx, link.user_id)
    row = (link.token_hash, link.account_id, link.user_id, link.expires_at, link.by_operator, link.is_recovery)
    await tx.execute("password_links.insert", *row)


async def find(tx: store.Transaction, token_hash: bytes) -> Link | None:
    """The link of a token, expired or not."""
    row = await tx.fetch_one("password_links.by_hash", token_hash)
    return Link(*row) if row else None


async def consume(tx: store.Transaction, token_hash: bytes) -> Link | None:
    """The same, and delete it: only one of several concurrent callers gets it."""
    rows = await tx.fetch("password_links.consume", token_hash)
    return Link(*rows[0]) if rows else None


async def remove(tx: store.Transaction, user_id: str) -> None:
    """Delete the links of a user."""
    await tx.execute("password_links.remove_of_user", user_id)


async def sweep(tx: store.Transaction, *, now: int) -> int:
    """Delete up to SWEEP_ROWS expired links; returns how many."""
    return await tx.execute("password_links.sweep", now, SWEEP_ROWS)
