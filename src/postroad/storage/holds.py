"""What the operator holds back: all mail, an account, a recipient domain, or a domain of an account.

Held recipients stay queued and are not claimed. A released hold is kept for a while: what it held does not expire
before it had a new retry period.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from postroad.storage import queue, store

# Stands for every account, or every domain.
ALL: Final = ""


class Hold(msgspec.Struct, frozen=True):
    """A row of `holds`. Recipients queued before `in_doubt_before` may have been delivered already."""

    account_id: str
    domain: str
    reason: str
    held_at: int
    released_at: int | None = None
    in_doubt_before: int | None = None


class HeldRecipient(msgspec.Struct, frozen=True):
    """A queued recipient that a hold covers."""

    account_id: str
    message_id: str
    recipient_id: str
    email: str
    queued_at: int


Holds = Mapping[tuple[str, str], Hold]


def by_key(found: Iterable[Hold], *, in_force: bool) -> Holds:
    """The holds in force, or the released ones, for `covering`."""
    return {(one.account_id, one.domain): one for one in found if (one.released_at is None) == in_force}


def covering(found: Holds, queue_key: str) -> Hold | None:
    """The widest of the holds that covers a scheduled queue."""
    if not found:
        return None
    domain, account_id, *_ = queue.parts_of(queue_key)
    keys = ((ALL, ALL), (account_id, ALL), (ALL, domain), (account_id, domain))
    return next((found[key] for key in keys if key in found), None)


async def listed(tx: store.Transaction) -> list[Hold]:
    """All holds, oldest first, released ones included."""
    return [Hold(*row) for row in await tx.fetch("holds.listed")]


async def in_force(tx: store.Transaction) -> Holds:
    """The holds in force."""
    return by_key(await listed(tx), in_force=True)


async def put(tx: store.Transaction, hold: Hold) -> bool:
    """Hold; False when it was held already, which stays as it is unless the new one has `in_doubt_before`."""
    return await tx.execute("holds.put", *msgspec.structs.astuple(hold)) == 1


async def release(tx: store.Transaction, hold: Hold, *, now: int) -> bool:
    """Release; False when it was not held."""
    return await tx.execute("holds.release", hold.account_id, hold.domain, now) == 1


async def sweep(tx: store.Transaction, *, released_before: int) -> int:
    """Delete holds that were released before a time."""
    return await tx.execute("holds.sweep", released_before)


async def counts(tx: store.Transaction, hold: Hold, *, queued_before: int) -> list[tuple[str, int]]:
    """How many recipients a hold covers in each scheduled queue, most first."""
    rows = await tx.fetch("holds.counts", hold.account_id, hold.domain, queued_before)
    return [(queue_key, number) for queue_key, number in rows]


async def recipients(
    tx: store.Transaction, hold: Hold, *, queued_before: int, after: queue.Key, limit: int
) -> list[HeldRecipient]:
    """The recipients that a hold covers, in order of their keys."""
    rows = await tx.fetch("holds.recipients", hold.account_id, hold.domain, queued_before, *after, limit)
    return [HeldRecipient(*row) for row in rows]


async def newest_message_at(tx: store.Transaction) -> int | None:
    """When the newest message was accepted: how recent a restored database is. Reads all messages."""
    row = await tx.fetch_one("holds.newest_message_at")
    return row[0] if row else None
