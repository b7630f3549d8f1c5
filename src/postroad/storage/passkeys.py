"""Passkeys of logins, and the challenges that were answered with one.

Each statement that uses something up says whether it did, so that of two requests with the same answer one succeeds.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Final

from postroad.storage import store

# Small enough that a sweep delays a send no longer than another send does.
SWEEP_ROWS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Passkey:
    """A row of `passkeys`. `transports` are words separated by spaces."""

    id: str
    login_id: str
    credential_id: bytes
    public_key: bytes = field(repr=False)
    sign_count: int
    user_handle: bytes
    rp_id: str
    transports: str
    name: str
    created_at: int
    last_used_at: int | None = None


async def of_login(tx: store.Transaction, login_id: str) -> list[Passkey]:
    """The passkeys of a login, oldest first."""
    return [_passkey(row) for row in await tx.fetch("passkeys.of_login", login_id)]


async def by_credential(tx: store.Transaction, credential_id: bytes) -> Passkey | None:
    """The passkey that an authenticator names."""
    row = await tx.fetch_one("passkeys.by_credential", credential_id)
    return _passkey(row) if row else None


async def insert(tx: store.Transaction, passkey: Passkey) -> bool:
    """Store a new passkey; False if its credential is known."""
    return await tx.execute("passkeys.insert", *dataclasses.astuple(passkey)) == 1


async def use(tx: store.Transaction, passkey_id: str, *, sign_count: int, now: int) -> bool:
    """Note a use; False if the count is not above that of the last one, or the passkey was removed."""
    return await tx.execute("passkeys.use", passkey_id, sign_count, now) == 1


async def remove(tx: store.Transaction, login_id: str, passkey_id: str) -> bool:
    """Delete a passkey of a login; False if there is none."""
    return await tx.execute("passkeys.remove", login_id, passkey_id) == 1


async def remove_all(tx: store.Transaction, login_id: str) -> int:
    """Delete the passkeys of a login; returns how many."""
    return await tx.execute("passkeys.remove_all", login_id)


async def use_challenge(tx: store.Transaction, challenge_hash: bytes, *, expires_at: int, now: int) -> bool:
    """Use a challenge up; False if it is. Those that have expired are forgotten: the table stays small."""
    await tx.execute("passkeys.sweep_challenges", now, SWEEP_ROWS)
    return await tx.execute("passkeys.use_challenge", challenge_hash, expires_at) == 1


def _passkey(row: store.Row) -> Passkey:
    # PostgreSQL and SQLite return bytes of different types.
    return Passkey(row[0], row[1], bytes(row[2]), bytes(row[3]), row[4], bytes(row[5]), *row[6:])
