"""The size of the database, and how free space goes back to the file system.

SQLite keeps the pages of deleted rows for new ones; `auto_vacuum=INCREMENTAL`, set when a file is created, lets it
return them in small steps. A file from before that keeps them until a VACUUM. PostgreSQL has autovacuum.
"""

from typing import Final

import msgspec

from postroad.storage.engine import queries, store

# What is free up to this part of the file is left: new mail needs it again.
RESERVE: Final = 0.1


class Space(msgspec.Struct, frozen=True):
    """The bytes of the database, and those of them that are free for new rows; None where only the engine knows."""

    size: int
    free: int | None

    @property
    def is_worth_returning(self) -> bool:
        """Whether more is free than new rows need soon."""
        return self.free is not None and self.free > self.size * RESERVE


async def read(tx: store.Transaction) -> Space:
    row = await tx.fetch_one("space.read")
    return Space(*row) if row else Space(0, None)


async def shrink(tx: store.Transaction) -> bool:
    """Return some free space; False when nothing more can or needs to be returned."""
    before = await read(tx)
    if not before.is_worth_returning:
        return False
    await tx.fetch("space.shrink")
    return (await read(tx)).size < before.size


@queries.change("disk_samples.insert")
async def add_sample(tx: store.Transaction, host: str, folder: str, *, now: int, free_bytes: int) -> None: ...


async def oldest_sample(tx: store.Transaction, host: str, folder: str, *, since: int) -> tuple[int, int] | None:
    """The time and the free bytes of the oldest measurement since then."""
    row = await tx.fetch_one("disk_samples.oldest", host, folder, since)
    return (int(row[0]), int(row[1])) if row else None


@queries.changes("disk_samples.sweep")
async def sweep_samples(tx: store.Transaction, *, before: int) -> int: ...
