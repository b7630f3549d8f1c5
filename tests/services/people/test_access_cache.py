"""The memory of a process: what it caches of access, and when it asks the store."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from postroad import context, errors
from postroad.services.people import access_cache
from postroad.storage.engine import open_store, store
from postroad.storage.people import credentials as stored
from tests.contexts import SECOND
from tests.postgres_server import PostgresServer

NOW = 1_000_000 * SECOND


class WatchedStore:
    """A real store that counts the questions, and can hold their answers back."""

    def __init__(self, real: store.Store) -> None:
        self._real = real
        self.dialect = real.dialect
        self.questions = 0
        self.answers = asyncio.Event()
        self.answers.set()

    @contextlib.asynccontextmanager
    async def looking_up(self) -> AsyncIterator[store.Transaction]:
        self.questions += 1
        async with self._real.looking_up() as tx:
            yield tx
            await self.answers.wait()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - everything else is the real store's
        return getattr(self._real, name)


@pytest.fixture
def watched(ctx: context.Context) -> WatchedStore:
    return WatchedStore(ctx.store)


@pytest.fixture
def remembered(watched: WatchedStore) -> access_cache.AccessCache:
    return access_cache.AccessCache(watched)


async def change(database: store.Store) -> None:
    async with database.transaction() as tx:
        await stored.bump_access_version(tx)


async def test_the_store_is_asked_twice_a_second_at_most_and_facts_stay_while_nothing_changes(
    remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    (await remembered.refresh(NOW))["fact"] = 1
    for hundredths in range(100):
        assert await remembered.refresh(NOW + hundredths * SECOND // 100) == {"fact": 1}
    assert watched.questions == 2


@pytest.mark.parametrize("later", [SECOND // 2, -3600 * SECOND], ids=["half a second later", "set back"])
async def test_a_change_by_another_process_is_felt_within_half_a_second_by_any_clock(
    ctx: context.Context, remembered: access_cache.AccessCache, later: int
) -> None:
    (await remembered.refresh(NOW))["fact"] = 1
    await change(ctx.store)
    assert await remembered.refresh(NOW + later) == {}


async def test_after_a_change_of_its_own_a_process_asks_at_once(
    remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    (await remembered.refresh(NOW))["fact"] = 1
    remembered.invalidate()
    assert await remembered.refresh(NOW) == {}
    assert watched.questions == 2


async def test_what_was_looked_up_before_a_change_is_not_remembered_after_it(
    ctx: context.Context, remembered: access_cache.AccessCache
) -> None:
    before = await remembered.refresh(NOW)
    await change(ctx.store)
    await remembered.refresh(NOW + SECOND)
    before["fact"] = "as it was before the change"
    assert await remembered.refresh(NOW + SECOND) == {}


async def test_many_callers_share_one_question_which_outlives_whoever_asked_it(
    remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    watched.answers.clear()
    first, *waiting = [asyncio.ensure_future(remembered.refresh(NOW)) for _ in range(50)]
    await asyncio.sleep(0)
    first.cancel()
    watched.answers.set()
    facts = await asyncio.gather(*waiting)
    assert watched.questions == 1
    assert all(found is facts[0] for found in facts)


async def test_an_answer_from_before_a_change_of_its_own_is_not_believed(
    ctx: context.Context, remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    watched.answers.clear()
    early = asyncio.ensure_future(remembered.refresh(NOW))
    while watched.questions == 0:
        await asyncio.sleep(0)
    await change(ctx.store)
    remembered.invalidate()
    late = asyncio.ensure_future(remembered.refresh(NOW))
    watched.answers.set()
    await early
    (await late)["fact"] = 1
    assert watched.questions == 2
    await change(ctx.store)
    assert await remembered.refresh(NOW + SECOND) == {}


async def test_an_answer_that_came_late_brings_no_old_facts(
    remembered: access_cache.AccessCache, watched: WatchedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (await remembered.refresh(NOW))["fact"] = 1
    monkeypatch.setattr(access_cache, "FRESH_MICROSECONDS", 0)  # any answer is late now
    assert await remembered.refresh(NOW + SECOND) == {}


async def test_facts_are_bounded(remembered: access_cache.AccessCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_cache, "MAX_ENTRIES", 10)
    (await remembered.refresh(NOW)).update(dict.fromkeys(range(11)))
    assert await remembered.refresh(NOW) == {}


def test_a_digest_is_the_same_within_a_process_and_worthless_outside(ctx: context.Context) -> None:
    mine, other = access_cache.AccessCache(ctx.store), access_cache.AccessCache(ctx.store)
    assert mine.digest("secret") == mine.digest("secret") != other.digest("secret")
    assert mine.digest("half \ud800 pair") != mine.digest("secret")


async def test_the_end_waits_for_a_question_under_way(
    remembered: access_cache.AccessCache, watched: WatchedStore
) -> None:
    watched.answers.clear()
    asker = asyncio.ensure_future(remembered.refresh(NOW))
    await asyncio.sleep(0)
    asker.cancel()
    end = asyncio.ensure_future(remembered.close())
    await asyncio.sleep(0)
    assert not end.done()
    watched.answers.set()
    await end


async def test_without_the_store_nothing_is_trusted_and_when_it_is_back_all_is_well() -> None:
    with PostgresServer() as own_server:
        database = await open_store.open_current(own_server.create_database(), migrate=True)
        remembered = access_cache.AccessCache(database)
        (await remembered.refresh(NOW))["fact"] = 1
        own_server.stop()
        assert await remembered.refresh(NOW + SECOND // 2 - 1) == {"fact": 1}
        for _ in range(2):
            with pytest.raises(errors.ServiceUnavailable):
                await remembered.refresh(NOW + SECOND)
        own_server.start()
        assert await remembered.refresh(NOW + SECOND) == {"fact": 1}
        await database.close()
