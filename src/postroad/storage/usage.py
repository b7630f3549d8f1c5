"""What an account has used: credits behind a place in its ledger, and recipients by tag. Every read is bounded."""

from collections.abc import Iterable, Mapping

import msgspec

from postroad.storage import store


class TagUsage(msgspec.Struct, frozen=True):
    """Messages and recipients with a tag."""

    tag: str
    messages: int
    recipients: int


async def moved_since(tx: store.Transaction, account_id: str, *, cursor: str, limit: int) -> int | None:
    """What the ledger's entries from a cursor on have added to the available credits; None if they are too many."""
    row = await tx.fetch_one("usage.moved_since", account_id, cursor, limit)
    counted, moved = row or (0, 0)
    return moved if counted < limit else None


async def billing(tx: store.Transaction, account_id: str, message_ids: Iterable[str]) -> Mapping[str, str]:
    """The billing status of messages, as far as they still exist."""
    wanted = [(account_id, message_id) for message_id in sorted(set(message_ids))]
    rows = await tx.fetch_many("usage.billing", wanted) if wanted else []
    return {row[0]: row[1] for row in rows}


async def floor(tx: store.Transaction, account_id: str, *, after: str, examined: int) -> str | None:
    """The id of the last of so many messages; None if there are fewer."""
    row = await tx.fetch_one("usage.floor", account_id, after, examined - 1)
    return row[0] if row else None


async def by_tag(tx: store.Transaction, account_id: str, *, after: str, limit: int) -> list[TagUsage]:
    """The most used tags of messages from a cursor on."""
    return [TagUsage(*row) for row in await tx.fetch("usage.by_tag", account_id, after, limit)]
