"""The free space of file systems, as each host measures it every hour: how fast a disk fills."""

from postroad.storage import store


async def add(tx: store.Transaction, host: str, folder: str, *, now: int, free_bytes: int) -> None:
    """Store a measurement."""
    await tx.execute("disk_samples.insert", host, folder, now, free_bytes)


async def oldest(tx: store.Transaction, host: str, folder: str, *, since: int) -> tuple[int, int] | None:
    """The time and the free bytes of the oldest measurement since then."""
    row = await tx.fetch_one("disk_samples.oldest", host, folder, since)
    return (int(row[0]), int(row[1])) if row else None


async def sweep(tx: store.Transaction, *, before: int) -> int:
    """Delete older measurements."""
    return await tx.execute("disk_samples.sweep", before)
