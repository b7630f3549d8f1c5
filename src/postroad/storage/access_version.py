"""The version of everything that decides who may do what: credentials, keys, tokens, people, accounts, domains.

Whoever takes something away bumps it in the same transaction; every process compares it before trusting what it
remembers.
"""

from postroad.storage import store


async def version(tx: store.Transaction) -> int:
    """The current version."""
    row = await tx.fetch_one("access.version")
    return int(row[0]) if row else 0


async def bump(tx: store.Transaction) -> None:
    """Tell every process to look again."""
    await tx.execute("access.bump")
