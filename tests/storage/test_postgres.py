"""What only a server can suffer: outages, killed and silent connections, time limits, dead locks."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import asyncpg
import pytest

from postroad import errors
from postroad.storage.engine import open_store, postgres
from postroad.storage.engine.postgres import PostgresStore
from postroad.storage.engine.store import Store, Transaction, TransactionAborted
from postroad.storage.people import accounts, credentials
from tests.chaos import networks
from tests.postgres_server import PostgresServer
from tests.storage import samples

KILL_THE_OTHERS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture
async def store(clean_postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = await open_store.open_current(clean_postgres_url, migrate=True)
    assert isinstance(opened, PostgresStore)
    yield opened
    await opened.close()


async def bump(store: Store) -> None:
    async with store.transaction() as tx:
        await credentials.bump_access_version(tx)


async def version(store: Store) -> int:
    async with store.reading() as tx:
        return await credentials.access_version(tx)


async def ask_in_each_kind(store: Store) -> None:
    for kind in ("transaction", "reading", "looking_up", "scanning"):
        async with getattr(store, kind)() as tx:
            await credentials.access_version(tx)


async def administer(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def recovers(store: Store) -> None:
    """A connection pool may hold many broken connections, and each may be found broken once."""
    for _ in range(20):
        with contextlib.suppress(errors.ServiceUnavailable):
            await ask_in_each_kind(store)
            return
    pytest.fail("the store did not recover")


async def test_an_outage_is_reported_as_such_and_survived_without_a_restart() -> None:
    with PostgresServer() as server:
        store = await open_store.open_current(server.create_database(), migrate=True)
        await bump(store)
        for _ in range(2):
            await asyncio.to_thread(server.stop)
            for kind in ("transaction", "reading", "looking_up", "scanning"):
                with pytest.raises(errors.ServiceUnavailable):
                    async with getattr(store, kind)() as tx:
                        await credentials.access_version(tx)
            await asyncio.to_thread(server.start)
            await recovers(store)
        await bump(store)
        assert await version(store) == 2
        await store.close()


async def test_an_outage_in_the_middle_of_a_transaction_undoes_it() -> None:
    with PostgresServer() as server:
        store = await open_store.open_current(server.create_database(), migrate=True)

        async def write(*, statement_after: bool) -> None:
            async with store.transaction() as tx:
                await credentials.bump_access_version(tx)
                await asyncio.to_thread(server.stop)
                if statement_after:
                    await credentials.bump_access_version(tx)

        # Without a statement after it, it is the commit that fails, and that could have gone either way.
        for statement_after, reported in ((True, "nothing was accepted"), (False, "did not confirm")):
            with pytest.raises(errors.ServiceUnavailable, match=reported):
                await write(statement_after=statement_after)
            await asyncio.to_thread(server.start)
            await recovers(store)
            assert await version(store) == 0
        await store.close()


async def test_a_server_that_is_not_there_cannot_be_reached() -> None:
    with PostgresServer() as server:
        url = server.url()
    with pytest.raises(errors.ServiceUnavailable):
        await open_store.open_store(url)


async def test_a_database_that_is_not_there_cannot_be_reached(postgres_server: PostgresServer) -> None:
    with pytest.raises(errors.ServiceUnavailable):
        await open_store.open_store(postgres_server.url("no_such_database"))


async def test_a_mistake_in_the_url_is_reported_as_such() -> None:
    with pytest.raises(ValueError, match="sslmode"):
        await open_store.open_store("postgresql://localhost/postroad?sslmode=perhaps")


async def test_killed_connections_are_replaced(store: PostgresStore, clean_postgres_url: str) -> None:
    await asyncio.gather(*[version(store) for _ in range(10)])
    for _ in range(3):
        await administer(clean_postgres_url, KILL_THE_OTHERS)
        await recovers(store)
    await asyncio.gather(*[bump(store) for _ in range(20)])
    assert await version(store) == 20


async def test_a_connection_killed_within_a_transaction_undoes_it(
    store: PostgresStore, clean_postgres_url: str
) -> None:
    async def write() -> None:
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
            await administer(clean_postgres_url, KILL_THE_OTHERS)
            await credentials.bump_access_version(tx)

    with pytest.raises(errors.ServiceUnavailable):
        await write()
    await recovers(store)
    assert await version(store) == 0


async def test_the_first_error_is_the_one_that_is_raised_when_the_connection_is_gone_too(
    store: PostgresStore, clean_postgres_url: str
) -> None:
    async def fail() -> None:
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
            await administer(clean_postgres_url, KILL_THE_OTHERS)
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    await recovers(store)


async def test_trouble_after_the_commit_does_not_make_it_a_failure(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncpg.pool.Pool.release

    async def release_badly(pool: object, connection: object, *, timeout: float) -> None:  # noqa: ASYNC109 - asyncpg's own
        await release(pool, connection, timeout=timeout)
        raise ConnectionResetError

    with monkeypatch.context() as patch:
        patch.setattr(asyncpg.pool.Pool, "release", release_badly)
        await bump(store)
    assert await version(store) == 1


async def test_a_transaction_that_the_server_has_aborted_is_not_taken_for_committed(store: PostgresStore) -> None:
    """Its answer to the COMMIT of such a transaction is a ROLLBACK, and no error."""

    async def write() -> None:
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
            assert isinstance(tx, postgres.PostgresTransaction)
            with contextlib.suppress(asyncpg.PostgresSyntaxError):
                await tx._connection.execute("SELEKT")  # without the adapter's knowledge

    with pytest.raises(TransactionAborted):
        await write()
    assert await version(store) == 0


async def test_a_statement_that_takes_too_long_is_a_temporary_failure(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples.teach(store, sleep="SELECT pg_sleep(60)")

    async def sleep(kind: str) -> None:
        async with getattr(store, kind)() as tx:
            await tx.fetch("test.sleep")

    with monkeypatch.context() as patch:
        patch.setattr(postgres, "COMMAND_SECONDS", 0.2)
        for kind in ("transaction", "reading", "looking_up"):
            with pytest.raises(errors.TemporaryFailure):
                await sleep(kind)
    await ask_in_each_kind(store)


async def test_the_server_knows_the_bounds_too(store: PostgresStore) -> None:
    samples.teach(store, statement="SHOW statement_timeout", idle="SHOW idle_in_transaction_session_timeout")
    for kind, seconds in (("transaction", "10s"), ("reading", "10s"), ("scanning", "1min")):
        async with getattr(store, kind)() as tx:
            assert [tuple(row) for row in await tx.fetch("test.statement")] == [(seconds,)]
            assert [tuple(row) for row in await tx.fetch("test.idle")] == [("30s",)]


async def test_an_abandoned_transaction_loses_its_locks(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)
    monkeypatch.setattr(postgres, "IDLE_SECONDS", 1)

    async def forget() -> None:
        async with store.transaction() as tx:
            await accounts.lock(tx, ["acc_1"])
            async with store.transaction() as other:  # waits until the server has ended the first
                assert await accounts.suspend(other, "acc_1", reason="bounces", by=accounts.OPERATOR, now=1)
            await accounts.resume(tx, "acc_1")

    with pytest.raises((errors.TemporaryFailure, errors.ServiceUnavailable)):
        await forget()
    async with store.reading() as tx:
        account = await accounts.by_id(tx, "acc_1")
    assert account is not None
    assert account.status == "suspended"


async def test_a_lock_that_does_not_come_is_a_temporary_failure(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)

    async def lock() -> None:
        async with store.transaction() as tx:
            await accounts.lock(tx, ["acc_1"])

    async with store.transaction() as holder:
        await accounts.lock(holder, ["acc_1"])
        with monkeypatch.context() as patch:
            patch.setattr(postgres, "COMMAND_SECONDS", 0.2)
            with pytest.raises(errors.TemporaryFailure):
                await lock()
    await lock()


async def test_a_dead_lock_is_a_temporary_failure_for_one_and_none_for_the_other(store: PostgresStore) -> None:
    async with store.transaction() as tx:
        for name in ("acc_1", "acc_2"):
            await samples.add_account(tx, name)
    both = asyncio.Barrier(2)

    async def cross(first: str, second: str) -> None:
        async with store.transaction() as tx:
            await accounts.lock(tx, [first])
            await both.wait()
            await accounts.lock(tx, [second])

    outcomes = await asyncio.gather(cross("acc_1", "acc_2"), cross("acc_2", "acc_1"), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "TemporaryFailure"]
    assert await version(store) == 0


async def test_too_few_connections_are_a_temporary_failure(
    clean_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store.open_store(clean_postgres_url, connections=1)

    async def enter(kind: str) -> None:
        async with getattr(store, kind)():
            pytest.fail("there is no connection left")

    async with store.scanning():
        with monkeypatch.context() as patch:
            for limit in ("COMMAND_SECONDS", "CONNECT_SECONDS"):
                patch.setattr(postgres, limit, 0.1)
            for kind in ("transaction", "reading", "looking_up", "scanning"):
                with pytest.raises(errors.TemporaryFailure):
                    await enter(kind)
    async with store.scanning():
        pass
    await store.close()


async def test_who_waits_for_a_connection_in_use_waits_longer_than_for_a_server(
    clean_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store.open_current(clean_postgres_url, migrate=True, connections=1)

    async def look_up() -> int:
        async with store.looking_up() as tx:
            return await credentials.access_version(tx)

    monkeypatch.setattr(postgres, "CONNECT_SECONDS", 0.01)
    async with store.looking_up():
        waiting = asyncio.create_task(look_up())
        await asyncio.wait([waiting], timeout=0.1)
    assert await waiting == 0
    await store.close()


async def test_a_connection_in_use_does_not_keep_a_store_open_for_ever(
    clean_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "CLOSE_SECONDS", 0.1)
    store = await open_store.open_current(clean_postgres_url, migrate=True)

    async def hold() -> None:
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
            await store.close()
            await credentials.bump_access_version(tx)

    with pytest.raises(errors.ServiceUnavailable):
        await hold()
    again = await open_store.open_store(clean_postgres_url)
    assert await version(again) == 0
    await again.close()


async def test_a_schema_changed_by_another_host_costs_one_temporary_failure_a_connection(
    store: PostgresStore, clean_postgres_url: str
) -> None:
    async with store.transaction() as tx:
        await samples.add_account(tx)
    for _ in range(10):
        await samples.balances(store, "acc_1")
    await administer(clean_postgres_url, "ALTER TABLE accounts ALTER COLUMN created_at TYPE NUMERIC")
    with contextlib.suppress(errors.TemporaryFailure):
        await samples.balances(store, "acc_1")
    assert await samples.balances(store, "acc_1") == (0, 0)


async def test_a_character_that_no_text_may_have_is_the_callers_mistake(store: PostgresStore) -> None:
    async def write(tx: Transaction) -> None:
        await accounts.insert(tx, "acc_1", name="nul \0", now=samples.NOW)

    with pytest.raises(errors.InvalidRequest):
        async with store.transaction() as tx:
            await write(tx)
    with pytest.raises(errors.InvalidRequest):
        async with store.reading() as tx:
            await accounts.by_id(tx, "acc_\0")
    assert await samples.count(store, "accounts") == 0


async def test_every_text_is_sorted_by_its_bytes_as_in_sqlite(store: PostgresStore) -> None:
    samples.teach(
        store,
        columns="SELECT attrelid::regclass::text, attname::text, collname::text FROM pg_attribute "
        "JOIN pg_collation ON pg_collation.oid = attcollation JOIN pg_class ON pg_class.oid = attrelid "
        "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND attnum > 0 "
        "AND relname <> 'schema_migrations'",
    )
    columns = await samples.scan(store, "test.columns")
    assert len(columns) > 30
    assert [tuple(column) for column in columns if column[2] != "C"] == []


async def test_a_service_runs_with_rights_that_do_not_allow_it_to_change_the_schema(
    store: PostgresStore, clean_postgres_url: str, postgres_server: PostgresServer
) -> None:
    role = "clerk_" + clean_postgres_url.partition("test_")[2][:16]
    await administer(
        clean_postgres_url,
        f"CREATE ROLE {role} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC; "
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}",
    )
    try:
        for migrate in (False, True):
            clerk = await open_store.open_current(clean_postgres_url.replace("postgres@", f"{role}@"), migrate=migrate)
            await bump(clerk)
            await clerk.close()
    finally:
        await administer(clean_postgres_url, f"DROP OWNED BY {role}; DROP ROLE {role}")
    assert await version(store) == 2


async def test_a_sweep_does_not_wait_for_a_key_that_is_about_to_be_used_again(store: PostgresStore) -> None:
    samples.teach(store, take="SELECT 1 FROM idempotency_keys WHERE key = 'key_0' FOR UPDATE")
    rows = [("cred_1", f"key_{number}", "acc_1", b"hash", "em_1", number, None) for number in range(3)]
    async with store.transaction() as tx:
        await tx.execute_many("idempotency.insert", rows)
    async with store.transaction() as tx:
        await tx.fetch("test.take")
        async with store.transaction() as sweeping:
            assert await sweeping.execute("idempotency.sweep", samples.NOW, 100) == 2
    assert await samples.count(store, "idempotency_keys") == 1


CONNECTIONS = 5


async def all_ask_at_once(store: Store) -> None:
    """Each has a connection of its own."""
    together = asyncio.Barrier(CONNECTIONS)

    async def ask() -> None:
        async with store.transaction() as tx:
            await credentials.access_version(tx)
            await together.wait()

    await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))


async def test_when_connections_have_fallen_silent_one_failure_replaces_them_all(
    clean_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with networks.between(clean_postgres_url, random.Random(1)) as (network, url):
        store = await open_store.open_store(url, connections=CONNECTIONS)
        await all_ask_at_once(store)
        for link in network.links:
            link.flows.clear()
        with monkeypatch.context() as hurried:
            hurried.setattr(postgres, "CONNECT_SECONDS", 0.2)
            with pytest.raises(errors.TemporaryFailure):
                async with store.transaction():
                    pass
        # Long timeouts again: on a busy machine new connections take their time.
        await all_ask_at_once(store)
        await store.close()


async def test_a_connection_that_is_closed_between_two_steps_of_a_statement_is_an_outage(
    clean_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store.open_current(clean_postgres_url, migrate=True)
    prepare = asyncpg.Connection._get_statement

    async def prepare_and_lose(connection: asyncpg.Connection, *arguments: object, **options: object) -> object:
        statement = await prepare(connection, *arguments, **options)
        connection.terminate()
        return statement

    for kind in ("transaction", "reading", "looking_up"):
        with monkeypatch.context() as patch:
            patch.setattr(asyncpg.Connection, "_get_statement", prepare_and_lose)
            with pytest.raises(errors.ServiceUnavailable):
                async with getattr(store, kind)() as tx:
                    await credentials.access_version(tx)
        async with getattr(store, kind)() as tx:
            assert await credentials.access_version(tx) == 0
    await store.close()
