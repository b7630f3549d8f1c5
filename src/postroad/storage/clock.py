"""The clock of the database server."""

from postroad.storage import store


async def now(tx: store.Transaction) -> int:
    """Microseconds since 1970. On SQLite it is the clock of this host."""
    row = await tx.fetch_one("clock.now")
    assert row is not None  # noqa: S101 - it has one row
    return int(row[0])
