"""Connections that have fallen silent, as after a partition: one failure is enough to mistrust all of them."""

import asyncio
import random

import asyncpg
import pytest

from postroad import errors
from postroad.storage.engine import open_store, postgres
from postroad.storage.engine.store import Store
from postroad.storage.people import credentials
from tests.chaos import networks

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
