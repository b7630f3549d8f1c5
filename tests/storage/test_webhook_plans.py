"""PostgreSQL keeps plans: those that it makes while a new database is empty must suit one with a million rows too."""

import re

import asyncpg

from postroad.storage import opening, postgres, queries

FILES = ("webhooks.", "webhook_deliveries.", "webhook_attempts.", "traffic.", "attempts.", "queue_views.first")
# These read a small index from its beginning, or every endpoint once a minute.
READING_ON = {"webhooks.removed", "webhook_deliveries.sweep_untold"}
SCAN = re.compile(r"(?:Index|Index Only|Seq|Bitmap Index) Scan(?: Backward)? (?:using \w+ )?on ")


async def kept_plan(connection: asyncpg.Connection, name: str, statement: str) -> list[str]:
    """The plan that a connection goes on with when it has seen a statement often."""
    places = len((await connection.prepare(statement)).get_parameters())
    prepared = name.replace(".", "_")
    await connection.execute(f"PREPARE {prepared} AS {statement}")
    arguments = f"({', '.join(['NULL'] * places)})" if places else ""
    return [row[0] for row in await connection.fetch(f"EXPLAIN EXECUTE {prepared}{arguments}")]


def is_by_key(plan: list[str]) -> bool:
    """Whether every scan has something to look up."""
    following = [*plan[1:], ""]
    return all("Index Cond" in after for line, after in zip(plan, following, strict=True) if SCAN.search(line))


async def test_plans_that_are_made_for_an_empty_database_go_by_key(postgres_url: str) -> None:
    store = await opening.open_current(postgres_url, migrate=True)
    await store.close()
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(f"{postgres._BEGIN}; SET LOCAL plan_cache_mode = force_generic_plan")
        statements = {name: text for name, text in queries.load("postgres").items() if name.startswith(FILES)}
        plans = {name: await kept_plan(connection, name, text) for name, text in statements.items()}
    finally:
        await connection.close()
    assert {name for name, plan in plans.items() if not is_by_key(plan)} == READING_ON
