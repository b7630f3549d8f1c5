"""Processes of the crash matrix: how a writer and its frontends end, and what is reported."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.chaos import boundaries, flaky_host, hosts, snapshot, trial
from tests.reliability import delivery_harness, process_trees


@pytest_asyncio.fixture
async def writer(clean_sqlite_url: str, tmp_path: Path) -> AsyncIterator[hosts.Host]:
    async with flaky_host.running(random.Random(1)) as mail_host:
        tables = trial.tables(mail_host)
        async with delivery_harness.open_context(clean_sqlite_url, tables):
            host = hosts.Host.make(
                tmp_path, clean_sqlite_url, name="listeners", roles=trial.LISTENER_ROLES, tables=tables
            )
            await host.start()
            try:
                yield host
            finally:
                host.abandon()


async def test_a_writer_ends_with_its_frontend_and_it_is_no_finding(writer: hosts.Host) -> None:
    assert writer.has_frontends
    await writer.kill_a_frontend(random.Random(1))
    assert await writer.reap() == (boundaries.A_FRONTEND, "")
    assert writer.ended_badly == []
    assert snapshot.errors([writer]) == []


async def test_frontends_end_with_their_writer(writer: hosts.Host) -> None:
    frontends = list(writer._frontends)
    assert len(frontends) == hosts.FRONTENDS
    assert await writer.reap() == (boundaries.ANY_MOMENT, "")
    assert not any(map(process_trees.is_alive, frontends))
    assert writer.ended_badly == []
    assert writer.orphaned_seconds < hosts.ORPHAN_SECONDS
