"""The version of everything that decides who may do what: credentials, keys, tokens, users, accounts, domains.

A revocation increments it in the same transaction; every process compares it before it uses what it has cached.
"""

from postroad.storage import store


async def version(tx: store.Transaction) -> int:
    """The current version."""
    row = await tx.fetch_one("access_version.version")
    return int(row[0]) if row else 0


async def bump(tx: store.Transaction) -> None:
    """Invalidate the caches of every process."""
    await tx.execute("access_version.bump")
