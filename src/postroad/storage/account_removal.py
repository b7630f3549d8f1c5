"""Deletes everything that belongs to an account, in bounded batches; see `services/accounts/closure.py`.

Messages with their parts, and webhook deliveries with their attempts, are deleted by `retention.py` and
`webhook_deliveries.py`. Every other table of an account is in `TABLES`; a test compares them with the schema.
"""

from typing import Final

from postroad.storage import store

# One transaction: a few milliseconds of work, during which other writers wait.
MAX_ROWS: Final = 1_000
# In this order: what refers to another table comes before it, and the audit log is complete until the end.
TABLES: Final = (
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
    "domains",
    "template_versions",
    "templates",
    "saved_views",
    "suppressions",
    "bounce_guard_days",
    "bounce_guard_reports",
    "hourly_counts",
    "failure_counts",
    "holds",
    "ledger",
    "audit_log",
)


async def has_queue(tx: store.Transaction, account_id: str) -> bool:
    """Whether mail of an account is not final yet."""
    return await tx.fetch_one("account_removal.has_queue", account_id) is not None


async def mark(tx: store.Transaction, account_id: str, *, now: int) -> None:
    """Mark an account and its endpoints as removed, and free its name."""
    await tx.execute("account_removal.mark", account_id, now)
    await tx.execute("account_removal.mark_webhooks", account_id, now)
    await tx.execute("account_removal.webhook_secrets", account_id)


async def marked(tx: store.Transaction, *, limit: int) -> list[str]:
    """Accounts that are marked and not deleted yet."""
    return [str(row[0]) for row in await tx.fetch("account_removal.marked", limit)]


async def webhooks(tx: store.Transaction, account_id: str) -> list[str]:
    """The endpoints of an account, all of them removed."""
    return [str(row[0]) for row in await tx.fetch("account_removal.webhooks", account_id)]


async def delete_rows(table: str, account_id: str, tx: store.Transaction) -> int:
    """Delete up to MAX_ROWS rows of an account from a table; returns how many."""
    return await tx.execute(f"account_removal.{table}", account_id, MAX_ROWS)


async def delete_account(tx: store.Transaction, account_id: str) -> None:
    """Delete the row of an account that is marked."""
    await tx.execute("account_removal.account", account_id)
