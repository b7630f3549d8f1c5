"""The queue: one row for each recipient that is not final, taken lane by lane under leases.

A lane is a recipient's domain and an account. Whoever takes work walks from lane to lane, so that a destination with a
hundred thousand waiting recipients, or an account with as many, takes its turn like everyone else. A claim lasts until
its lease ends; a dead worker's claims come back by time. No transaction is open while mail is on its way.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad.storage import recipients, store

ANY_TIME: Final = 2**62
Key = tuple[str, str, str]  # account, message, recipient


class Claimed(msgspec.Struct, frozen=True):
    """A recipient that a worker holds. `lost_leases` counts those that held it before and never told the result."""

    account_id: str
    message_id: str
    recipient_id: str
    lane: str
    email: str
    email_key: str
    size: int
    attempt_count: int
    lost_leases: int
    queued_at: int

    @property
    def key(self) -> Key:
        """What names the row."""
        return self.account_id, self.message_id, self.recipient_id


class ClaimRequest(msgspec.Struct, frozen=True):
    """So many of a lane, as far as they were queued before a time."""

    lane: str
    limit: int
    queued_before: int = ANY_TIME


def queue_key_of(domain: str, account_id: str) -> str:
    """The name of a lane."""
    return f"{domain} {account_id}"


def domain_of(lane: str) -> str:
    """The recipients' domain of a lane."""
    return lane.partition(" ")[0]


async def insert(
    tx: store.Transaction, new: Sequence[recipients.NewRecipient], sizes: Mapping[str, int], *, now: int
) -> None:
    """Queue the recipients of accepted messages; `sizes` are those of the messages by id."""
    rows = [
        (
            r.account_id,
            r.message_id,
            r.id,
            queue_key_of(r.domain, r.account_id),
            r.email,
            r.email_key,
            sizes[r.message_id],
            now,
        )
        for r in new
    ]
    await tx.execute_many("queue.insert", rows)


async def is_due(tx: store.Transaction, *, now: int, leases_until: int | None = None) -> bool:
    """Whether there is anything to promote."""
    return await tx.fetch_one("queue.is_due", now, now if leases_until is None else leases_until) is not None


async def is_longer_than(tx: store.Transaction, limit: int) -> bool:
    """Whether more recipients than this wait; reads as many rows."""
    return await tx.fetch_one("queue.is_longer_than", limit) is not None


async def promote(tx: store.Transaction, *, now: int, limit: int, leases_until: int | None = None) -> int:
    """Make ready what is due by now; leases are over that end by a time, which is now unless it is given."""
    return await tx.execute("queue.promote", now, limit, now if leases_until is None else leases_until)


async def lanes(tx: store.Transaction, *, after: str, limit: int) -> list[str]:
    """Lanes with ready rows, in their order, from beyond one of them."""
    return [lane for (lane,) in await tx.fetch("queue.lanes", after, limit)]


async def claim(
    tx: store.Transaction, wanted: Sequence[ClaimRequest], *, lease_until: int, worker: str
) -> list[Claimed]:
    """Take ready rows of lanes, the oldest first; recipients of one message come together, however many were wanted."""
    rows = await tx.fetch_many("queue.claim", [(w.lane, w.limit, lease_until, worker, w.queued_before) for w in wanted])
    return sorted((Claimed(*row) for row in rows), key=lambda claimed: claimed.recipient_id)


async def extend(tx: store.Transaction, keys: Sequence[Key], *, lease_until: int, worker: str) -> list[Key]:
    """Hold on to claims; returns those that the worker still had."""
    rows = await tx.fetch_many("queue.extend", [(*key, lease_until, worker) for key in keys])
    return [(account_id, message_id, recipient_id) for account_id, message_id, recipient_id in rows]


async def hand_back(tx: store.Transaction, keys: Sequence[Key], *, now: int, worker: str) -> None:
    """Let go of claims that nothing was done with."""
    await tx.execute_many("queue.hand_back", [(*key, now, worker) for key in keys])


async def postpone(tx: store.Transaction, rows: Sequence[tuple[Key, int]], *, worker: str) -> list[Key]:
    """Count an attempt and wait until the given times; returns those for which the worker still held the lease."""
    found = await tx.fetch_many("queue.postpone", [(*key, due_at, worker) for key, due_at in rows])
    return [(account_id, message_id, recipient_id) for account_id, message_id, recipient_id in found]


async def remove(tx: store.Transaction, keys: Sequence[Key]) -> None:
    """Forget recipients that are final."""
    await tx.execute_many("queue.remove", keys)
