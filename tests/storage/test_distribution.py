"""The schema and its statements stay fit for a distributed PostgreSQL (Citus) with `account_id` as distribution column.

There, every unique key must contain the distribution column, and a statement that does not name the account goes to
all shards. What does not fit today is listed with its reason; a list that no longer agrees with the schema fails too.
`distribution.sql` beside it is the script for Citus.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import asyncpg
import pytest

from postroad.storage.engine import queries
from tests.storage.samples import words

SCRIPT: Final = Path(__file__).with_name("distribution.sql")
COLUMN: Final = "account_id"

# What grows with the mail, or changes with each message.
HOT: Final = set(
    """
    api_key_usage async_bounces attempt_conversations attempts audit_log bodies bounce_guard_days
    bounce_guard_reports dmarc_rows failure_counts hourly_counts idempotency_keys ledger message_metadata
    message_tags messages queue rates received_bodies received_counts received_messages received_reports recipients
    request_log resends suppressions tls_report_rows unsubscribes warmups webhook_attempts webhook_deliveries
    """.split()
)
# What belongs to accounts and grows with their number: small enough for a copy on every node.
SETTINGS: Final = set(
    """
    api_keys approvals credentials dismissed_networks dkim_keys domain_checks domains holds inbound_routes notices
    password_links
    saved_views sessions sso_connections sso_domains sso_identities template_versions templates users webhook_secrets
    webhooks
    """.split()
)
# Credentials and API keys belong to one account, so the account would change nothing but the size of the index, on the
# way of every accept. The script widens these keys; the statements that name them in ON CONFLICT have to follow.
NARROW_KEYS: Final = {
    "api_key_usage": ["key_id"],
    "idempotency_keys": ["credential_id, key"],
    "rates": ["name"],
}

# Statements on hot tables that go to all shards.
CROSS_SHARD: Final = words(
    {
        "looks for work of any account; an engine would do it shard by shard": """
            queue.claim queue.claim_expired queue.claim_urgent queue.find_work queue.promote queue.queue_keys
            queue.urgent_keys webhook_deliveries.claim webhook_deliveries.endpoints webhook_deliveries.is_due
            webhook_deliveries.promote""",
        "finds its row by the API key, before anybody knows the account": "api_keys.by_hash",
        "finds its row by the credential or the API key, whose account the caller knows": """
            api_keys.budgets idempotency.find rates.find""",
        "is maintenance over all accounts, once an hour or less": """
            audit_log.sweep bounce_guard_days.sweep bounce_guard_days.sweep_reports dmarc_rows.sweep
            failure_counts.sweep hourly_counts.sweep idempotency.sweep queue.end_leases rates.sweep
            received_counts.sweep received_reports.sweep request_log.sweep retention.bodies_over
            retention.messages_over retention.received_bodies_over retention.remove_received
            retention.test_messages_over tls_report_rows.sweep webhook_deliveries.sweep""",
        "removes an account by its credentials": """
            account_removal.api_key_usage account_removal.idempotency_keys account_removal.rates""",
        "proves the whole store for `postroad verify`": """
            consistency.counts consistency.message_credits consistency.message_ends
            consistency.message_reservations consistency.orphan_rows consistency.webhook_ends
            consistency.webhook_overtried consistency.wrong_billing""",
        "counts over all accounts, for metrics, limits and operators": """
            accounts.low_credit_count accounts.low_on_credits api_keys.expiring failure_counts.by_provider
            holds.newest_message_at hourly_counts.by_hour hourly_counts.by_provider
            hourly_counts.bytes_by_account
            messages.test_bytes_by_account queue.totals_by_account queue_views.due_reasons
            queue_views.largest_accounts queue_views.totals webhook_views.counts""",
        "is a page, or a step of a job, of operators over all accounts": """
            audit_log.floor_of_all audit_log.page_of_all queue_views.locate queue_views.walk queue_views.walk_end
            queue_views.walk_page""",
        "is a page of one account that finds rows by an endpoint or a scheduled queue, which have one account": """
            queue_views.ahead webhook_deliveries.deferrals_since webhook_deliveries.failed_between
            webhook_deliveries.page_failed""",
    }
)

UNIQUE_KEYS: Final = """
SELECT relname::text, string_agg(attname, ', ' ORDER BY place)
FROM pg_index
JOIN pg_class ON pg_class.oid = indrelid AND relnamespace = 'public'::regnamespace
CROSS JOIN unnest(indkey::int[]) WITH ORDINALITY AS part (number, place)
JOIN pg_attribute ON attrelid = indrelid AND attnum = part.number
WHERE indisunique GROUP BY relname, indexrelid
"""
OWNED: Final = """
SELECT relname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    AND attname = $1
"""

_QUERY: Final = re.compile(r"\s*(?:SELECT|WITH|UPDATE|DELETE|INSERT)\b")
_TABLE: Final = re.compile(r"\b(?:FROM|JOIN|UPDATE|INTO|USING)\s+(\w+)")
_BOUND: Final = re.compile(
    rf"\b{COLUMN} = (?:ANY\s*\()?[$\w]"  # by an argument, or by a row that was found by it
    rf"|\b{COLUMN}[\w, ]*\) IN \("
    rf"|^INSERT INTO \w+ \([^)]*\b{COLUMN}\b"
)


@pytest.fixture
async def connection(clean_postgres_url: str) -> asyncpg.Connection:
    opened = await asyncpg.connect(clean_postgres_url)
    yield opened
    await opened.close()


def parts_of(statement: str) -> Iterator[str]:
    """The queries of a statement, each without those inside it."""
    opened = [""]
    for character in re.sub(r"--.*|'[^']*'", "", statement):
        if character == "(":
            opened.append("")
        elif character == ")":
            inner = opened.pop()
            if _QUERY.match(inner):
                yield from _united(inner)
                inner = "…"
            opened[-1] += f"({inner})"
        else:
            opened[-1] += character
    yield from _united(opened[0])


def _united(query: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\bUNION(?: ALL)?\b", query)]


def is_cross_shard(statement: str) -> bool:
    """Whether a query of it reads or changes a hot table without naming the account."""
    return any(HOT & set(_TABLE.findall(part)) and not _BOUND.search(part) for part in parts_of(statement))


async def test_every_table_of_accounts_is_hot_or_small(connection: asyncpg.Connection) -> None:
    owned = {name for (name,) in await connection.fetch(OWNED, COLUMN)}
    assert owned == HOT | SETTINGS
    assert not HOT & SETTINGS


async def test_every_unique_key_of_a_hot_table_contains_the_account(connection: asyncpg.Connection) -> None:
    narrow: dict[str, list[str]] = {}
    for table, columns in await connection.fetch(UNIQUE_KEYS):
        if table in HOT and COLUMN not in columns.split(", "):
            narrow.setdefault(table, []).append(columns)
    assert narrow == NARROW_KEYS


def test_every_statement_on_a_hot_table_names_the_account_or_has_a_reason() -> None:
    found = {name for name, statement in queries.load("postgres").items() if is_cross_shard(statement)}
    assert found - CROSS_SHARD == set(), "statements without the account: name it, or list them with their reason"
    assert CROSS_SHARD - found == set(), "these name the account by now, or are gone"


@pytest.mark.parametrize(
    "statement, expected",
    [
        ("SELECT * FROM messages WHERE account_id = $1 AND id = $2", False),
        ("SELECT * FROM messages WHERE id = $1", True),
        ("SELECT * FROM accounts WHERE id = $1", False),
        (
            "DELETE FROM queue WHERE (account_id, message_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))",
            False,
        ),
        (
            "UPDATE queue SET ready = 1 WHERE (account_id, message_id) IN (SELECT account_id, message_id FROM queue)",
            True,
        ),
        ("INSERT INTO rates (name, account_id) VALUES ($1, $2)", False),
        ("INSERT INTO rates (name) VALUES ($1)", True),
        ("SELECT 1 FROM bodies WHERE account_id = $1 UNION ALL SELECT 1 FROM bodies", True),
        ("SELECT '(', 1 FROM webhooks -- FROM queue", False),
    ],
)
def test_the_reader_of_statements_knows_which_names_the_account(statement: str, *, expected: bool) -> None:
    assert is_cross_shard(statement) is expected


def test_the_script_for_citus_distributes_every_hot_table_and_copies_the_others() -> None:
    script = SCRIPT.read_text()
    arrays = re.findall(r"unnest\(ARRAY\[(.*?)\]\)", script, re.DOTALL)
    distributed, copied = (set(re.findall(r"'(\w+)'", array)) for array in arrays)
    assert distributed == HOT
    assert copied == SETTINGS
    for table, keys in NARROW_KEYS.items():
        for columns in keys:
            assert (
                f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY (account_id, {columns});" in script
            )
