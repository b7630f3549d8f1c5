"""Which server of several is taken, what works through PgBouncer, and which error means what to a caller."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import asyncpg
import pytest

from postroad import errors
from postroad.storage.engine import open_store, postgres, postgres_connections
from postroad.storage.engine.store import ConstraintViolated, Store, TransactionAborted
from postroad.storage.people import credentials
from tests.postgres_pair import LoopbackServer, Pair
from tests.storage import samples

BY_KEY = "force_generic_plan"


async def bump(store: Store) -> None:
    async with store.transaction() as tx:
        await credentials.bump_access_version(tx)


async def version(store: Store) -> int:
    async with store.reading() as tx:
        return await credentials.access_version(tx)


def test_a_url_is_divided_into_one_for_each_server() -> None:
    assert postgres_connections.server_urls("postgresql://a:b@one:1,[::1]:2,three/name?x=y") == [
        "postgresql://a:b@one:1/name?x=y",
        "postgresql://a:b@[::1]:2/name?x=y",
        "postgresql://a:b@three/name?x=y",
    ]
    for url in ("postgresql://one/name", "postgresql://postgres@/name?host=/run/a,b&port=5432", "postgresql:///name"):
        assert postgres_connections.server_urls(url) == [url]


@contextlib.asynccontextmanager
async def silent_server() -> AsyncIterator[int]:
    """A port where connections are accepted and nothing is ever said, as behind a dead host."""

    async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(be_silent, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_a_silent_server_does_not_hide_the_primary() -> None:
    async with silent_server() as silent:
        with Pair() as pair:
            url = pair.create_database().replace("@", f"@127.0.0.1:{silent},")
            store = await open_store.open_current(url, migrate=True)
            await bump(store)
            assert await version(store) == 1
            await store.close()


async def test_without_a_primary_there_is_no_connection() -> None:
    with Pair() as pair:
        url = pair.create_database()
        await asyncio.to_thread(pair.primary.kill)
        with pytest.raises(errors.ServiceUnavailable):
            await open_store.open_store(url)


async def test_a_primary_that_was_made_read_only_is_left_for_the_new_one() -> None:
    with Pair() as pair:
        store = await open_store.open_current(pair.create_database(), migrate=True)
        await bump(store)
        for statement in ("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"):
            await asyncio.to_thread(pair.primary.execute, statement)
        assert pair.standby is not None
        await asyncio.to_thread(pair.standby.promote)
        async with asyncio.timeout(600):
            while await version(store) == 1:
                with contextlib.suppress(errors.ServiceUnavailable):
                    await bump(store)
        await store.close()
        store = await open_store.open_store(LoopbackServer.url(pair.standby, database_of(pair)))
        assert await version(store) == 2
        await store.close()


def database_of(pair: Pair) -> str:
    assert pair.standby is not None
    return pair.standby.execute("SELECT datname FROM pg_database WHERE datname LIKE 'test_%'")


async def test_a_direct_connection_is_known_from_one_through_a_pooler(
    clean_postgres_url: str, bouncer_url: str
) -> None:
    for url, is_pooled in ((clean_postgres_url, False), (bouncer_url, True)):
        connection = await postgres_connections.connect(url, timeout=600)
        assert await postgres_connections.is_pooled(connection) is is_pooled
        connection.terminate()


async def test_a_store_works_through_pgbouncer_whichever_session_it_gets(
    clean_postgres_url: str, bouncer_url: str
) -> None:
    stores = [await open_store.open_current(bouncer_url, migrate=True) for _ in range(3)]
    for _ in range(5):
        await asyncio.gather(*(bump(store) for store in stores for _ in range(5)))
    assert await version(stores[0]) == 75
    for store in stores:
        await store.close()
    direct = await open_store.open_store(clean_postgres_url)
    assert await version(direct) == 75
    await direct.close()


@pytest.mark.parametrize("fixture", ["clean_postgres_url", "bouncer_url"])
async def test_short_statements_are_planned_by_key_and_scans_are_not(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    store = await open_store.open_store(request.getfixturevalue(fixture))
    samples.teach(store, **{name: f"SHOW {name}" for name in postgres_connections.PLANS_BY_KEY})
    for _ in range(2):  # what a kind sets must not last
        for kind in ("transaction", "leasing", "reading", "looking_up", "scanning"):
            async with getattr(store, kind)() as tx:
                found = [(await tx.fetch(f"test.{name}"))[0][0] for name in postgres_connections.PLANS_BY_KEY]
            assert found == (["on", "on", "on", "auto"] if kind == "scanning" else ["off", "off", "off", BY_KEY]), kind
    await store.close()


@pytest.mark.parametrize("fixture", ["clean_postgres_url", "bouncer_url"])
async def test_lookups_see_what_others_change_between_them(fixture: str, request: pytest.FixtureRequest) -> None:
    """Without a transaction, and through a pooler in one that has no snapshot of its own."""
    store = await open_store.open_current(request.getfixturevalue(fixture), migrate=True)
    async with store.looking_up() as tx:
        before = await credentials.access_version(tx)
        await bump(store)
        assert await credentials.access_version(tx) > before
    await store.close()


async def test_nobody_listens_through_pgbouncer_and_wakeups_are_sent_through_it(
    clean_postgres_url: str, bouncer_url: str
) -> None:
    heard = asyncio.Event()
    async with (
        postgres.connected_wakeups(clean_postgres_url) as direct,
        postgres.connected_wakeups(bouncer_url) as pooled,
    ):
        assert await direct.listen({"postroad_test": heard.set})
        assert not await pooled.listen({"postroad_test": heard.set})
        await pooled.send(["postroad_test"])
        async with asyncio.timeout(600):
            await heard.wait()


def translate(failure: Exception) -> BaseException:
    with pytest.raises(Exception) as raised, postgres_connections.translated():
        raise failure
    return raised.value


@pytest.mark.parametrize(
    "state, expected",
    [
        ("53100", errors.ServiceUnavailable),  # disk full
        ("53200", errors.ServiceUnavailable),  # out of memory
        ("53300", errors.ServiceUnavailable),  # too many connections
        ("58030", errors.ServiceUnavailable),  # I/O error
        ("57P01", errors.ServiceUnavailable),  # shutting down
        ("57P03", errors.ServiceUnavailable),  # starting up
        ("08006", errors.ServiceUnavailable),  # connection failure
        ("28P01", errors.ServiceUnavailable),  # wrong password
        ("3D000", errors.ServiceUnavailable),  # no such database
        ("25006", errors.ServiceUnavailable),  # read-only: a standby
        ("57014", errors.TemporaryFailure),  # statement timeout
        ("55P03", errors.TemporaryFailure),  # lock not available
        ("40P01", errors.TemporaryFailure),  # dead lock
        ("40001", errors.TemporaryFailure),  # serialisation
        ("25P03", errors.TemporaryFailure),  # idle in transaction
        ("23505", ConstraintViolated),
        ("23514", ConstraintViolated),
        ("25P02", TransactionAborted),
        ("22021", errors.InvalidRequest),  # NUL
        ("42601", asyncpg.PostgresSyntaxError),  # bugs stay bugs
        ("42P01", asyncpg.UndefinedTableError),
        ("22003", asyncpg.NumericValueOutOfRangeError),
    ],
)
def test_each_sqlstate_has_its_meaning(state: str, expected: type[Exception]) -> None:
    failure = asyncpg.PostgresError.new({"C": state, "M": "said the server", "S": "ERROR"})
    translated = translate(failure)
    assert type(translated) is expected
    assert translated is failure or translated.__cause__ is failure


@pytest.mark.parametrize(
    "failure, expected",
    [
        (ConnectionRefusedError(), errors.ServiceUnavailable),
        (OSError(), errors.ServiceUnavailable),
        (asyncpg.InterfaceError("pool is closing"), errors.ServiceUnavailable),
        (asyncpg.InternalClientError("lost track"), errors.ServiceUnavailable),
        (TimeoutError(), errors.TemporaryFailure),
        (asyncpg.OutdatedSchemaCacheError("migrated"), errors.TemporaryFailure),
        (KeyError("no such query"), KeyError),
        (asyncpg.ClientConfigurationError("a mistake in the URL"), asyncpg.ClientConfigurationError),
    ],
)
def test_each_failure_on_the_way_has_its_meaning(failure: Exception, expected: type[Exception]) -> None:
    assert type(translate(failure)) is expected


def test_what_callers_see_reveals_nothing_internal() -> None:
    failure = asyncpg.PostgresError.new({"C": "28P01", "M": "password of user secret at 10.0.0.7", "S": "FATAL"})
    assert "10.0.0.7" not in str(translate(failure))
