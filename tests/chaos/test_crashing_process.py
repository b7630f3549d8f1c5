"""A process dies where it was ordered to, and only there."""

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from postroad.storage.engine import open_store, queries
from tests.chaos import boundaries, crashing_process
from tests.chaos.boundaries import Moment, Order


class Died(Exception):
    """Instead of a kill, which the test would not survive."""


@pytest_asyncio.fixture
async def crashing_store(
    clean_sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[crashing_process.CrashingStore]:
    def die(order: Order) -> None:
        raise Died(order.moment)

    monkeypatch.setattr(crashing_process, "die", die)
    store = crashing_process.CrashingStore(await open_store.open_store(clean_sqlite_url), tmp_path / "order")
    yield store
    await store.close()


async def sweep_and_bump(store: crashing_process.CrashingStore) -> None:
    """A transaction of the kind `sweep` that can be seen afterwards."""
    async with store.transaction() as tx:
        await tx.execute("idempotency.sweep", 0, 1)
        await tx.execute("access_version.bump")


async def version(store: crashing_process.CrashingStore) -> object:
    async with store.reading() as tx:
        row = await tx.fetch_one("access_version.version")
    return row and row[0]


def give(folder: Path, order: Order) -> None:
    (folder / "order").write_bytes(msgspec.json.encode(order))


@pytest.mark.parametrize("moment, is_stored", [(Moment.INSIDE, False), (Moment.BEFORE, False), (Moment.AFTER, True)])
async def test_what_is_stored_when_it_dies_follows_from_the_moment(
    crashing_store: crashing_process.CrashingStore, tmp_path: Path, moment: Moment, *, is_stored: bool
) -> None:
    before = await version(crashing_store)
    give(tmp_path, Order("sweep", moment))
    with pytest.raises(Died, match=moment):
        await sweep_and_bump(crashing_store)
    assert (await version(crashing_store) != before) == is_stored


@pytest.mark.parametrize("order", [None, Order("accept", Moment.BEFORE)])
async def test_without_an_order_for_its_kind_a_transaction_is_left_alone(
    crashing_store: crashing_process.CrashingStore, tmp_path: Path, order: Order | None
) -> None:
    if order is not None:
        give(tmp_path, order)
    before = await version(crashing_store)
    await sweep_and_bump(crashing_store)
    assert await version(crashing_store) != before


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_every_kind_is_named_by_a_query_that_exists(dialect: str) -> None:
    assert {kind.query for kind in boundaries.KINDS.values()} <= queries.load(dialect).keys()
