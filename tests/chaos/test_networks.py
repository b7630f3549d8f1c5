"""The network of the crash matrix does to connections what it says, and what it does not do passes."""

import asyncio
import random
from collections.abc import AsyncIterator

import asyncpg
import pytest
import pytest_asyncio

from tests.chaos import boundaries, networks
from tests.chaos.networks import Loss

TIMEOUT_SECONDS = 300.0


@pytest_asyncio.fixture
async def between(clean_postgres_url: str) -> AsyncIterator[tuple[networks.Network, str]]:
    async with networks.between(clean_postgres_url, random.Random(1)) as made:
        yield made


async def bump(connection: asyncpg.Connection) -> None:
    """A transaction that can be seen afterwards, of the kind `sweep`."""
    await connection.execute("BEGIN")
    (sweep,) = [text for text, kind in networks.kinds_by_statement().items() if kind == "sweep"]
    await connection.fetch(sweep, 0, 1)
    await connection.execute("UPDATE access_version SET version = version + 1")
    await connection.execute("COMMIT")


async def version(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT version FROM access_version"))
    finally:
        await connection.close()


@pytest.mark.parametrize("loss, committed", [(Loss.COMMIT, 0), (Loss.ANSWER, 1), (None, 1)])
async def test_a_lost_commit_changes_nothing_and_a_lost_answer_everything(
    between: tuple[networks.Network, str], loss: Loss | None, committed: int
) -> None:
    network, url = between
    before = await version(url)
    connection = await asyncpg.connect(url)
    network.aims |= {("accept", one) for one in Loss} | ({("sweep", loss)} if loss else set())
    if loss:
        with pytest.raises((asyncpg.PostgresConnectionError, ConnectionError)):
            await bump(connection)
    else:
        await bump(connection)
        await connection.close()
    assert await version(url) == before + committed
    assert network.losses == ({("sweep", loss): 1} if loss else {})


async def test_what_is_held_waits_and_what_is_refused_or_reset_ends(
    between: tuple[networks.Network, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    network, url = between
    monkeypatch.setattr(networks, "SHARE", 1.0)
    monkeypatch.setattr(networks, "HELD_SECONDS", 0.05)
    monkeypatch.setattr(networks, "REFUSING_SECONDS", 0.05)
    monkeypatch.setattr(networks, "HALF_OPEN_SECONDS", 0.05)
    connection = await asyncpg.connect(url)
    held = asyncio.create_task(network.hold())
    await asyncio.sleep(0)
    assert await connection.fetchval("SELECT 1", timeout=TIMEOUT_SECONDS) == 1
    assert held.done()
    await connection.close()
    for happen in (network.reset_some, network.leave_half_open, network.refuse):
        connection = await asyncpg.connect(url)
        happening = asyncio.create_task(happen())
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, ConnectionError)):
            await connection.fetchval("SELECT pg_sleep(600)", timeout=TIMEOUT_SECONDS)
        assert sum((await happening).values()) == 1


def test_every_kind_is_known_by_its_statement() -> None:
    assert set(networks.kinds_by_statement().values()) == set(boundaries.KINDS)
