"""Processes of the crash matrix: how a keeper and its doors end, and what is said of it."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.chaos import boundaries, flaky, hosts, trial, world
from tests.reliability import delivering, families


@pytest_asyncio.fixture
async def keeper(clean_sqlite_url: str, tmp_path: Path) -> AsyncIterator[hosts.Host]:
    async with flaky.running(random.Random(1)) as mail_host:
        tables = trial.tables(mail_host)
        async with delivering.open_context(clean_sqlite_url, tables):
            host = hosts.Host.make(tmp_path, clean_sqlite_url, name="doors", roles=trial.DOORS, tables=tables)
            await host.start()
            try:
                yield host
            finally:
                host.abandon()


async def test_a_keeper_ends_with_its_door_and_nobody_calls_it_a_fault(keeper: hosts.Host) -> None:
    assert keeper.has_doors
    await keeper.lose_a_door(random.Random(1))
    assert await keeper.bury() == (boundaries.A_DOOR, "")
    assert keeper.ended_badly == []
    assert world.errors([keeper]) == []


async def test_doors_end_with_their_keeper(keeper: hosts.Host) -> None:
    doors = list(keeper._doors)
    assert len(doors) == hosts.DOORS
    assert await keeper.bury() == (boundaries.ANY_MOMENT, "")
    assert not any(map(families.is_alive, doors))
    assert keeper.ended_badly == []
    assert keeper.orphaned_seconds < hosts.ORPHAN_SECONDS
