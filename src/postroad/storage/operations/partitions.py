"""Partitions of mail by the time of its acceptance, on PostgreSQL: they are dropped when all their mail has expired.

A partition is named after the day from which on its mail was accepted, such as `messages_from_20261130`. What was there
before the first of them is in `messages_first`. The mail of dropped partitions that had not expired is in a partition
such as `messages_late_20261130`, named after the day before which it was accepted. The newest one has no end. The
functions of the migration `0046_partitions.sql` change partitions, as the owner of the tables. SQLite has none.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from postroad.storage.engine import queries, store

CONTENT: Final = ("bodies",)
# Each with all that belongs to a message, so that they are dropped together.
MAIL: Final = (
    "messages",
    "recipients",
    "attempts",
    "attempt_conversations",
    "async_bounces",
    "message_tags",
    "message_metadata",
    "resends",
)
# Of dropped partitions, so much is kept: all other mail waits while it is copied, less than a second by estimate.
MAX_LATE_RECIPIENTS: Final = 5_000
MAX_LATE_BYTES: Final = 100_000_000


class Partitions(msgspec.Struct, frozen=True):
    """Where the partitions of a table end. All tables of a group have the same."""

    # In order, without that of late mail. The newest partition has none.
    bounds: Sequence[str]
    # The end of the partition of late mail; empty if nothing was dropped yet.
    dropped_before: str


async def read(tx: store.Transaction, tables: Sequence[str]) -> Partitions | None:
    """The partitions of a group of tables; None if the engine has none."""
    name = tables[0]
    ends = {str(row[0]): row[1] for row in await tx.fetch("partitions.of_table", name)}
    if not ends:
        return None
    late = [end for partition, end in ends.items() if partition.startswith(f"{name}_late_")]
    return Partitions(sorted(end for end in ends.values() if end and end not in late), max(late, default=""))


async def is_permitted(tx: store.Transaction) -> bool:
    """Whether the role of the database URL may begin and drop partitions."""
    row = await tx.fetch_one("partitions.is_permitted")
    return row is not None and bool(row[0])


async def bound(tx: store.Transaction, tables: Sequence[str], *, before: str | None) -> None:
    """Let the newest partitions take only rows before a bound, where they are to end; None ends this."""
    await tx.fetch("partitions.bound", tables, before)


# Whether `bound` was not followed by `extend`, because its process has ended.
@queries.exists("partitions.is_bounded")
async def is_bounded(tx: store.Transaction, tables: Sequence[str]) -> bool: ...


async def extend(tx: store.Transaction, tables: Sequence[str], *, until: str) -> None:
    """End the newest partitions at a bound and begin new ones, unless another host has done so.

    If mail is stored in them, it is read first, for an hour at most. Raises ConstraintViolated if some of it is beyond
    the bound.
    """
    names = ", ".join(f"'{name}'" for name in tables)
    await tx.run_script(f"SELECT extend_mail_partitions(ARRAY[{names}], '{until}')")


async def expire(tx: store.Transaction, tables: Sequence[str], *, before: str, ended_after: int) -> bool:
    """Drop all partitions before a bound, and keep the messages in them that have not ended or ended after a time.

    False if these are too many.
    """
    recipients, size = await tx.fetch_one("partitions.late", before, ended_after) or (0, 0)
    if recipients > MAX_LATE_RECIPIENTS or (tables is CONTENT and size > MAX_LATE_BYTES):
        return False
    await tx.fetch("partitions.expire", tables, before, ended_after)
    return True
