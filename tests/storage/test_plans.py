"""PostgreSQL caches plans: those made for an empty database must suit one with a million rows too."""

import re
from collections.abc import AsyncIterator

import asyncpg
import pytest

from postroad.storage.engine import open_store, postgres, queries
from postroad.storage.operations import partitions
from tests.storage.samples import words

# What messages and their events go through, and what finds rows of the queue by their names. The rest is about small
# tables, or asked for by people in scans, which are planned with what the tables hold by then.
FILES = tuple(
    """accounts. attempts. idempotency. ledger. messages. queue. queue_views.ahead queue_views.first
    queue_views.make_named_ready queue_views.make_ready queue_views.still_unleased recipients. suppressions.find
    hourly_counts. webhook_attempts. webhook_deliveries. webhooks.""".split()
)
READING_ON = words(
    {
        "reads an index from its beginning, up to a limit or while it is small": """
            hourly_counts.bytes_by_account messages.test_bytes_by_account queue.totals_by_account webhooks.removed""",
        "finds accounts by a part of a name or an id alone": "accounts.search messages.account_of",
        "reads accounts with mail of the last days, for a gauge": "accounts.low_on_credits accounts.low_credit_count",
        "reads every endpoint: once a minute, or when an operator asks for the checks": """
            webhook_deliveries.sweep_undelivered webhooks.formats""",
        "reads the whole queue, once after a restore": "queue.end_leases",
    }
)
SCAN = re.compile(r"(?:Bitmap Index Scan on|(?:Index|Index Only) Scan(?: Backward)? using|Seq Scan on) (\w+)")
COMPARED = re.compile(r"\((\w+) (?:=|<=?|>=?) ")
INDEXES = """
    SELECT indexrelid::regclass::text, array_agg(attname::text ORDER BY place)
    FROM pg_index CROSS JOIN unnest(indkey) WITH ORDINALITY AS part (number, place)
    JOIN pg_attribute ON attrelid = indrelid AND attnum = number GROUP BY indexrelid"""
ROWS = 2000


@pytest.fixture
async def connection(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    """In a transaction as the service begins it, on a new database: plans are kept from the first on."""
    store = await open_store.open_current(postgres_url, migrate=True)
    await store.close()
    opened = await asyncpg.connect(postgres_url)
    for bound in ("em_06600000000000", "em_06700000000000"):
        for tables in (partitions.CONTENT, partitions.MAIL):
            await opened.execute("SELECT extend_mail_partitions($1, $2)", tables, bound)
    await opened.execute(postgres._BEGIN)
    yield opened
    await opened.close()


async def kept_plan(connection: asyncpg.Connection, name: str, statement: str) -> list[str]:
    """The plan that a connection goes on with when it has seen a statement often."""
    places = len((await connection.prepare(statement)).get_parameters())
    prepared = name.replace(".", "_")
    await connection.execute(f"PREPARE {prepared} AS {statement}")
    arguments = f"({', '.join(['NULL'] * places)})" if places else ""
    return [row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {prepared}{arguments}")]


def is_by_key(plan: list[str], indexes: dict[str, list[str]]) -> bool:
    """Whether every scan has something to look up, by the first columns of its index and none left out between them."""
    for line, after in zip(plan, [*plan[1:], ""], strict=True):
        if scan := SCAN.search(line):
            compared = set(COMPARED.findall(after)) if "Index Cond" in after else set()
            if not compared or compared != set(indexes[scan[1]][: len(compared)]):
                return False
    return True


async def test_plans_that_are_made_for_an_empty_database_go_by_key(connection: asyncpg.Connection) -> None:
    indexes: dict[str, list[str]] = dict(await connection.fetch(INDEXES))
    statements = {name: text for name, text in queries.load("postgres").items() if name.startswith(FILES)}
    plans = {name: await kept_plan(connection, name, text) for name, text in statements.items()}
    assert {name for name, plan in plans.items() if not is_by_key(plan, indexes)} == READING_ON


async def test_a_long_scheduled_queue_is_not_scanned_for_each_message(connection: asyncpg.Connection) -> None:
    """Once for all that is claimed, and then by key: also with a plan that was made while nothing was ready."""
    statements = queries.load("postgres")
    await kept_plan(connection, "queue.claim", statements["queue.claim"])
    ids = [f"{number:05}" for number in range(ROWS)]
    same = [["x"] * ROWS] * 3
    numbers = [[value] * ROWS for value in (1, 0, 1, 0, None, None, None)]
    await connection.execute(statements["queue.insert"], ["acc"] * ROWS, ids, ids, *same, *numbers)
    claim = "queue_claim('{x}', '{100}', '{9}', '{worker}', '{5}')"
    analysed = [row[0] for row in await connection.fetch(f"EXPLAIN (ANALYZE, TIMING OFF) EXECUTE {claim}")]
    assert re.search(r"Update on queue .*actual rows=100\b", analysed[0]), analysed
    assert not [line for line in analysed if "Rows Removed" in line]
