"""Deletes expired mail: first the body of a message, later the message with everything that belongs to it.

Only messages that have ended are deleted. The ledger stays, because it sums to the balances of the account. Each call
handles as many messages as fit in a short transaction, and returns how many that were.
"""

from collections.abc import Sequence
from typing import Final

from postroad.storage import store

# One transaction: a few milliseconds of work, during which other writers wait.
MAX_MESSAGES: Final = 200
# SQLite reads a whole body to free its pages: about 10 ms for this many bytes.
MAX_BYTES: Final = 16 * 1024 * 1024
# Each with its attempts.
MAX_RECIPIENTS: Final = 400


async def remove_bodies(tx: store.Transaction, *, ended_before: int, ended_after: int = 0) -> int:
    """Delete the bodies of messages that ended at this time or earlier, but after another."""
    rows = await tx.fetch("retention.bodies_over", ended_before, MAX_MESSAGES, ended_after)
    gone = _batch(rows, limit=MAX_BYTES)
    await tx.execute_many("retention.remove_bodies", gone)
    await tx.execute_many("retention.note_bodies", gone)
    return len(gone)


async def remove_messages(tx: store.Transaction, *, ended_before: int, ended_after: int = 0) -> int:
    """Delete messages whose body is deleted already, and everything that belongs to them."""
    rows = await tx.fetch("retention.messages_over", ended_before, MAX_MESSAGES, ended_after)
    return await _remove(tx, _batch(rows, limit=MAX_RECIPIENTS))


async def remove_test_messages(tx: store.Transaction, *, ended_before: int) -> int:
    """Delete test messages that ended at this time or earlier, with their bodies and all that belongs to them."""
    return await _remove_with_bodies(tx, await tx.fetch("retention.test_messages_over", ended_before, MAX_MESSAGES))


async def remove_account_messages(tx: store.Transaction, account_id: str) -> int:
    """Delete messages of an account that is removed, with their bodies and everything that belongs to them."""
    return await _remove_with_bodies(tx, await tx.fetch("retention.messages_of", account_id, MAX_MESSAGES))


async def _remove_with_bodies(tx: store.Transaction, rows: list[store.Row]) -> int:
    gone = _batch([(account_id, message_id, size) for account_id, message_id, size, _ in rows], limit=MAX_BYTES)
    counts = [(account_id, message_id, count) for account_id, message_id, _, count in rows[: len(gone)]]
    gone = _batch(counts, limit=MAX_RECIPIENTS)
    await tx.execute_many("retention.remove_bodies", gone)
    return await _remove(tx, gone)


async def _remove(tx: store.Transaction, gone: list[tuple[str, str]]) -> int:
    await tx.execute_many("retention.remove_messages", gone)
    await tx.execute_many("retention.remove_tags", gone)
    await tx.execute_many("retention.remove_metadata", gone)
    await tx.execute_many("retention.remove_resends", gone)
    # Storing an asynchronous bounce locks the recipients: every one stored before they are deleted is found below.
    await tx.execute_many("retention.remove_recipients", gone)
    await tx.execute_many("retention.remove_attempts", gone)
    await tx.execute_many("retention.remove_conversations", gone)
    await tx.execute_many("retention.remove_async_bounces", gone)
    return len(gone)


def _batch(rows: Sequence[store.Row], *, limit: int) -> list[tuple[str, str]]:
    """The first of these messages up to a total weight, but at least one."""
    part: list[tuple[str, str]] = []
    total = 0
    for account_id, message_id, weight in rows:
        total += weight
        if part and total > limit:
            break
        part.append((account_id, message_id))
    return part
