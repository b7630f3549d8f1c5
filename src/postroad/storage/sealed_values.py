"""Everything in the database that is encrypted with the installation key, table by table.

A new table with ciphertexts gets a row in `TABLES`, and two queries, and an owner in `services/auth/sealed_values.py`:
then `postroad key rotate` encrypts it anew.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from postroad.storage import store

# The place before the first row of each table, in the types of its key.
TABLES: Final[Mapping[str, tuple[object, ...]]] = {
    "acme_accounts": ("",),
    "certificates": ("", ""),
    "dkim_keys": ("", "", ""),
    "sso_connections": ("",),
    "totp_secrets": ("",),
    "webhook_secrets": ("", "", 0),
    "webhooks": ("",),
}


async def page(tx: store.Transaction, table: str, *, after: Sequence[object], limit: int) -> list[store.Row]:
    """Rows of a key and a ciphertext, in the order of the key, after a place."""
    return await tx.fetch(f"sealed_values.{table}", *after, limit)


async def replace(tx: store.Transaction, table: str, rows: Sequence[store.Row]) -> None:
    """Store other ciphertexts for these keys."""
    await tx.execute_many(f"sealed_values.replace_{table}", rows)
