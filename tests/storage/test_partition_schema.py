"""The partitions of mail as the schema defines them: their tables, their options, and who may call their functions."""

import re

import asyncpg

from postroad.storage.engine import open_store, queries
from postroad.storage.operations import partitions

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
PARTITIONED_BY = """
SELECT partrelid::regclass::text, attname::text FROM pg_partitioned_table
JOIN pg_attribute ON attrelid = partrelid AND attnum = partattrs[0]"""


async def test_a_new_database_has_one_partition_and_whoever_may_delete_mail_may_expire_it(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(
            "CREATE ROLE worker; ALTER DEFAULT PRIVILEGES GRANT SELECT, DELETE ON TABLES TO worker"
        )
        await (await open_store.open_current(postgres_url, migrate=True)).close()
        assert dict(await connection.fetch(PARTITIONED_BY)) == TABLES
        await connection.execute("INSERT INTO bodies VALUES ('acc_1', 'em_1', 'x')")
        assert await connection.fetchval("SELECT tableoid::regclass::text FROM bodies") == "bodies_first"
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
