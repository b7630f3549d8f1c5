"""The fingerprint of the installation key, the keys that it replaced, and every value that is encrypted with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from postroad.storage.engine import store


@dataclass(frozen=True, slots=True)
class PreviousKey:
    """A row of `previous_keys`."""

    fingerprint: bytes
    installation_key: bytes = field(repr=False)
    replaced_at: int


async def fingerprint(tx: store.Transaction) -> bytes | None:
    """The fingerprint of the current key; None before the first process with a key."""
    row = await tx.fetch_one("installation_key.fingerprint")
    return bytes(row[0]) if row else None


async def lock(tx: store.Transaction) -> bytes | None:
    """The same, and nobody replaces the key before the transaction ends."""
    row = await tx.fetch_one("installation_key.lock")
    return bytes(row[0]) if row else None


async def remember(tx: store.Transaction, fingerprint: bytes) -> None:
    """Store the fingerprint, unless there is one."""
    await tx.execute("installation_key.remember", fingerprint)


async def replace(tx: store.Transaction, fingerprint: bytes) -> None:
    """Store the fingerprint of a new key."""
    await tx.execute("installation_key.replace", fingerprint)


async def previous(tx: store.Transaction) -> list[PreviousKey]:
    """The keys that were replaced, newest first."""
    return [PreviousKey(*row) for row in await tx.fetch("installation_key.previous")]


async def add_previous(tx: store.Transaction, key: PreviousKey) -> None:
    """Keep a key that is replaced."""
    await tx.execute("installation_key.add_previous", key.fingerprint, key.installation_key, key.replaced_at)


async def remove_previous(tx: store.Transaction, fingerprint: bytes) -> None:
    """Forget a replaced key."""
    await tx.execute("installation_key.remove_previous", fingerprint)


async def sweep_previous(tx: store.Transaction, *, before: int) -> int:
    """Forget keys that were replaced before a time; returns how many."""
    return await tx.execute("installation_key.sweep_previous", before)


# Everything in the database that is encrypted with the installation key, table by table.
#
# A new table with ciphertexts gets a row in `TABLES`, and two queries, and an owner in
# `keys/encryption.py`: then `postroad key rotate` encrypts it anew.

# The place before the first row of each table, in the types of its key.
ENCRYPTED_TABLES: Final[Mapping[str, tuple[object, ...]]] = {
    "acme_accounts": ("",),
    "certificates": ("", ""),
    "dkim_keys": ("", "", ""),
    "sso_connections": ("",),
    "totp_secrets": ("",),
    "webhook_secrets": ("", "", 0),
    "webhooks": ("",),
}


async def encrypted_page(tx: store.Transaction, table: str, *, after: Sequence[object], limit: int) -> list[store.Row]:
    """Rows of a key and a ciphertext, in the order of the key, after a place."""
    return await tx.fetch(f"sealed_values.{table}", *after, limit)


async def replace_encrypted(tx: store.Transaction, table: str, rows: Sequence[store.Row]) -> None:
    """Store other ciphertexts for these keys."""
    await tx.execute_many(f"sealed_values.replace_{table}", rows)
