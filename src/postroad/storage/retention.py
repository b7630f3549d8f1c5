"""Mail that is kept no longer: first the content of a message, later the message with all that belongs to it.

Only messages that have ended are ever touched. The ledger stays: it is the account's book, and sums to its balances.
Each call takes a bounded part, as much as a short transaction can do, and says how many messages that was.
"""

from typing import Final

from postroad.storage import store

# One transaction: a few milliseconds of work, for which everybody who writes waits.
MAX_MESSAGES: Final = 200
# SQLite walks through all of a content to give its pages back: some 10 ms for this much.
MAX_BYTES: Final = 16 * 1024 * 1024
# Each with its attempts.
MAX_RECIPIENTS: Final = 400


async def remove_bodies(tx: store.Transaction, *, ended_before: int) -> int:
    """Forget the content of messages that ended at this time or earlier, and keep the rest of them."""
    rows = await tx.fetch("retention.bodies_over", ended_before, MAX_MESSAGES)
    gone = _batch(rows, limit=MAX_BYTES)
    await tx.execute_many("retention.remove_bodies", gone)
    await tx.execute_many("retention.note_bodies", gone)
    return len(gone)


async def remove_messages(tx: store.Transaction, *, ended_before: int) -> int:
    """Forget messages whose content is gone already, and all that belongs to them."""
    rows = await tx.fetch("retention.messages_over", ended_before, MAX_MESSAGES)
    gone = _batch(rows, limit=MAX_RECIPIENTS)
    await tx.execute_many("retention.remove_messages", gone)
    await tx.execute_many("retention.remove_tags", gone)
    # Whoever writes down a late bounce holds the recipients: what was written before they go is found after that.
    await tx.execute_many("retention.remove_recipients", gone)
    await tx.execute_many("retention.remove_attempts", gone)
    await tx.execute_many("retention.remove_late_bounces", gone)
    return len(gone)


def _batch(rows: list[store.Row], *, limit: int) -> list[tuple[str, str]]:
    """The first of these messages, as many as weigh no more than this together; one at least."""
    part: list[tuple[str, str]] = []
    total = 0
    for account_id, message_id, weight in rows:
        total += weight
        if part and total > limit:
            break
        part.append((account_id, message_id))
    return part
