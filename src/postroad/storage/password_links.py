"""Links by which a person chooses a password, once. Of a token only its hash is kept."""

from dataclasses import dataclass, field
from typing import Final

from postroad.storage import store

# Few enough that a send never waits for a sweep longer than for another send.
SWEEP_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Link:
    """A row of `password_links`."""

    token_hash: bytes = field(repr=False)
    account_id: str
    user_id: str
    expires_at: int


async def replace(tx: store.Transaction, link: Link) -> None:
    """Make a link; those that the person had before do not work any more."""
    await remove(tx, link.user_id)
    await tx.execute("password_links.insert", link.token_hash, link.account_id, link.user_id, link.expires_at)


async def find(tx: store.Transaction, token_hash: bytes) -> Link | None:
    """The link behind a token, expired or not."""
    row = await tx.fetch_one("password_links.by_hash", token_hash)
    return Link(*row) if row else None


async def take(tx: store.Transaction, token_hash: bytes) -> Link | None:
    """The same, for the one who uses it: of several, one gets it."""
    rows = await tx.fetch("password_links.take", token_hash)
    return Link(*rows[0]) if rows else None


async def remove(tx: store.Transaction, user_id: str) -> None:
    """Make a person's links worthless."""
    await tx.execute("password_links.remove_of_user", user_id)


async def sweep(tx: store.Transaction, *, now: int) -> int:
    """Forget up to SWEEP_ROWS links that have expired; returns how many."""
    return await tx.execute("password_links.sweep", now, SWEEP_ROWS)
