"""Deletes expired mail, and everything of a removed account, in bounded batches."""

from collections.abc import Sequence
from typing import Final

from postroad.storage.engine import queries, store

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


async def remove_received_bodies(tx: store.Transaction, *, before: int) -> int:
    """Delete the content of mail that was received before a time."""
    return await _remove_received_bodies(tx, await tx.fetch("retention.received_bodies_over", before, MAX_MESSAGES))


# Delete received mail whose content is deleted already.
@queries.changes("retention.remove_received")
async def remove_received(tx: store.Transaction, *, before: int, limit: int = MAX_MESSAGES) -> int: ...


async def remove_account_received_bodies(tx: store.Transaction, account_id: str) -> int:
    """Delete the content of mail that an account which is removed has received; its rows follow."""
    return await _remove_received_bodies(tx, await tx.fetch("retention.received_bodies_of", account_id, MAX_MESSAGES))


async def _remove_received_bodies(tx: store.Transaction, rows: list[store.Row]) -> int:
    gone = _batch(rows, limit=MAX_BYTES)
    await tx.execute_many("retention.remove_received_bodies", gone)
    await tx.execute_many("retention.note_received_bodies", gone)
    return len(gone)


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


# Deletes everything that belongs to an account, in bounded batches; see `services/accounts/account_registry.py`.
#
# Messages with their parts, and webhook deliveries with their attempts, are deleted by `retention.py` and
# `webhooks.py`. Every other table of an account is in `TABLES`; a test compares them with the schema.

# One transaction: a few milliseconds of work, during which other writers wait.
MAX_ACCOUNT_ROWS: Final = 1_000
# In this order: what refers to another table comes before it, and the audit log is complete until the end.
ACCOUNT_TABLES: Final = (
    "received_messages",
    "received_counts",
    "inbound_routes",
    "approvals",
    "api_key_usage",
    "api_keys",
    "rates",
    "known_networks",
    "notice_mails",
    "notice_choices",
    "notices",
    "credentials",
    "password_links",
    "sessions",
    "totp_secrets",
    "recovery_codes",
    "passkeys",
    "sso_identities",
    "sso_domains",
    "sso_connections",
    "logins",
    "users",
    "dkim_keys",
    "domain_checks",
    "warmups",
    "received_reports",
    "dmarc_rows",
    "tls_report_rows",
    "dismissed_networks",
    "domains",
    "template_versions",
    "templates",
    "saved_views",
    "suppressions",
    "unsubscribes",
    "bounce_guard_days",
    "bounce_guard_reports",
    "hourly_counts",
    "failure_counts",
    "holds",
    "ledger",
    "request_log",
    "audit_log",
)


@queries.exists("account_removal.has_queue")
async def has_queue(tx: store.Transaction, account_id: str) -> bool: ...


async def mark_removed(tx: store.Transaction, account_id: str, *, now: int) -> None:
    """Mark an account and its endpoints as removed, and free its name."""
    await tx.execute("account_removal.mark", account_id, now)
    await tx.execute("account_removal.mark_webhooks", account_id, now)
    await tx.execute("account_removal.webhook_secrets", account_id)


@queries.rows("account_removal.marked", str)
async def marked_removed(tx: store.Transaction, *, limit: int) -> list[str]: ...
@queries.rows("account_removal.webhooks", str)
async def webhooks_of_account(tx: store.Transaction, account_id: str) -> list[str]: ...


async def delete_account_rows(table: str, account_id: str, tx: store.Transaction) -> int:
    """Delete up to MAX_ROWS rows of an account from a table; returns how many."""
    return await tx.execute(f"account_removal.{table}", account_id, MAX_ACCOUNT_ROWS)


@queries.change("account_removal.account")
async def delete_account(tx: store.Transaction, account_id: str) -> None: ...
