"""The fingerprint of the installation key, the keys that it replaced, and every value that is encrypted with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from postroad.storage.engine import queries, store


@dataclass(frozen=True, slots=True)
class PreviousKey:
    """A row of `previous_keys`."""

    fingerprint: bytes
    installation_key: bytes = field(repr=False)
    replaced_at: int


# The fingerprint of the current key; None before the first process with a key.
@queries.row("installation_key.fingerprint", bytes)
async def fingerprint(tx: store.Transaction) -> bytes | None: ...
@queries.row("installation_key.lock", bytes)
async def lock(tx: store.Transaction) -> bytes | None: ...
@queries.change("installation_key.remember")
async def remember(tx: store.Transaction, fingerprint: bytes) -> None: ...
@queries.change("installation_key.replace")
async def replace(tx: store.Transaction, fingerprint: bytes) -> None: ...
@queries.rows("installation_key.previous", PreviousKey)
async def previous(tx: store.Transaction) -> list[PreviousKey]: ...


async def add_previous(tx: store.Transaction, key: PreviousKey) -> None:
    await tx.execute("installation_key.add_previous", key.fingerprint, key.installation_key, key.replaced_at)


@queries.change("installation_key.remove_previous")
async def remove_previous(tx: store.Transaction, fingerprint: bytes) -> None: ...
# Forget keys that were replaced before a time; returns how many.
@queries.changes("installation_key.sweep_previous")
async def sweep_previous(tx: store.Transaction, *, before: int) -> int: ...


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
    return await tx.fetch(f"encrypted_values.{table}", *after, limit)


async def replace_encrypted(tx: store.Transaction, table: str, rows: Sequence[store.Row]) -> None:
    """Store other ciphertexts for these keys."""
    await tx.execute_many(f"encrypted_values.replace_{table}", rows)
