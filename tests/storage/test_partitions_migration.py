"""A database of the version before gets partitions: its mail stays, and everything is named as before."""

import re

import asyncpg
import pytest

from postroad.storage import open_store, partitions, queries
from postroad.storage.store import Store
from tests.storage import schema_upgrade

TABLES = {
    "messages": "id",
    "bodies": "message_id",
    "recipients": "message_id",
    "attempts": "message_id",
    "attempt_conversations": "message_id",
    "async_bounces": "message_id",
    "message_tags": "message_id",
    "message_metadata": "message_id",
    "resends": "resend_of",
}
# But for one that a later version adds.
INDEXES = """
SELECT indexname::text FROM pg_indexes WHERE tablename = ANY ($1) AND indexname <> 'messages_test_ended' ORDER BY 1"""
CONSTRAINTS = """
SELECT conrelid::regclass::text, conname::text, pg_get_constraintdef(oid) FROM pg_constraint
WHERE conrelid = ANY ($1::text[]::regclass[]) AND contype IN ('c', 'p') ORDER BY 1, 2"""
COLUMNS = """
SELECT attrelid::regclass::text, attname::text, format_type(atttypid, atttypmod), attnotnull, attstorage::text,
    pg_get_expr(adbin, adrelid)
FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE attrelid = ANY ($1::text[]::regclass[]) AND attnum > 0 AND NOT attisdropped ORDER BY 1, 2"""
PARTITIONED_BY = """
SELECT partrelid::regclass::text, attname::text FROM pg_partitioned_table
JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]"""


@pytest.fixture
def new_database_url(postgres_url: str) -> str:
    return postgres_url


async def test_mail_indexes_rules_and_rights_stay(
    empty: Store, upgrade: schema_upgrade.SchemaUpgrade, postgres_url: str
) -> None:
    await upgrade.begin("partitions")
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute("CREATE ROLE worker; GRANT SELECT, DELETE ON messages TO worker")
        await connection.execute("INSERT INTO bodies VALUES ('acc_1', 'em_1', 'x')")
        before = [await connection.fetch(query, list(TABLES)) for query in (INDEXES, CONSTRAINTS, COLUMNS)]
        await upgrade.finish()
        after = [await connection.fetch(query, list(TABLES)) for query in (INDEXES, CONSTRAINTS, COLUMNS)]
        # Those that were not checked for rows of an earlier version are checked now.
        checked = [[(*row[:2], row[2].removesuffix(" NOT VALID")) for row in before[1]]]
        assert [after[0], [tuple(row) for row in after[1]], after[2]] == [before[0], *checked, before[2]]
        assert dict(await connection.fetch(PARTITIONED_BY)) == TABLES
        assert await connection.fetchval("SELECT mime FROM bodies") == b"x"
        assert await connection.fetchval("SELECT tableoid::regclass::text FROM bodies") == "bodies_first"
        for right, is_granted in (("SELECT", True), ("DELETE", True), ("UPDATE", False)):
            assert (
                await connection.fetchval(f"SELECT has_table_privilege('worker', 'messages', '{right}')") is is_granted
            )
        may = "SELECT has_function_privilege($1, 'expire_mail_partitions(text[], text, bigint)', 'EXECUTE')"
        assert await connection.fetchval(may, "worker") is True
        await connection.execute("DROP OWNED BY worker; DROP ROLE worker")
    finally:
        await connection.close()


def test_every_partitioned_table_is_looked_after_and_held_for_a_consistency_check() -> None:
    assert {*partitions.CONTENT, *partitions.MAIL} == set(TABLES)
    assert set(re.findall(r"\w+", queries.load("postgres")["consistency.hold"])) >= set(TABLES)


async def test_new_partitions_are_like_the_first(postgres_url: str) -> None:
    """With its storage options, its rules and its indexes."""
    await (await open_store.open_current(postgres_url, migrate=True)).close()
    connection = await asyncpg.connect(postgres_url)
    like = """
        SELECT reloptions, (SELECT count(*) FROM pg_index WHERE indrelid = pg_class.oid),
            (SELECT array_agg(conname::text ORDER BY conname) FROM pg_constraint
                WHERE conrelid = pg_class.oid AND contype = 'c'),
            (SELECT array_agg(attstorage::text ORDER BY attnum) FROM pg_attribute
                WHERE attrelid = pg_class.oid AND attnum > 0)
        FROM pg_class WHERE oid = $1::text::regclass"""
    try:
        for table in TABLES:
            first = await connection.fetchrow(like, f"{table}_first")
            for bound in ("em_06600000000000", "em_06700000000000"):
                await connection.execute("SELECT extend_mail_partitions(ARRAY[$1], $2)", table, bound)
            await connection.execute("SELECT expire_mail_partitions(ARRAY[$1], 'em_06600000000000', 1)", table)
            found = await connection.fetch(
                "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = $1::text::regclass ORDER BY 1",
                table,
            )
            assert len(found) == 3
            for (name,) in found:
                assert await connection.fetchrow(like, name) == first, name
    finally:
        await connection.close()
