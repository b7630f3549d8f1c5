"""Which messages were sent again, and as which."""

from collections.abc import Sequence

from postroad.storage import store


async def insert(tx: store.Transaction, account_id: str, *, resend_of: str, message_id: str) -> None:
    """Store that a message was sent again as another."""
    await tx.execute("resends.insert", account_id, resend_of, message_id)


async def of_message(tx: store.Transaction, account_id: str, message_id: str, *, limit: int) -> list[str]:
    """The messages as which one was sent again, newest first."""
    return [str(row[0]) for row in await tx.fetch("resends.of_message", account_id, message_id, limit)]


async def of_messages(tx: store.Transaction, account_id: str, message_ids: Sequence[str]) -> set[str]:
    """Which of these messages were sent again."""
    rows = await tx.fetch_many("resends.of_messages", [(account_id, one) for one in message_ids])
    return {str(row[0]) for row in rows}
