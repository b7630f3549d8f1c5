"""A store that is slow: sends take longer or are told to come back, health answers, and all is well when it is quick.

On SQLite it is the disk that takes its time; on PostgreSQL a commit waits on the server.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from tests.reliability import crowds, families, houses, serving
from tests.reliability.worlds import World

SLOW_SECONDS = 0.3
MANY = 40
WAITING = 10
VERY_SLOW_SECONDS = 2.0
# Until everybody has a connection, and then until what was kept of each refusal would be 90 MB.
SOME_REFUSALS, MORE_REFUSALS = 500, 2000
# At the end of every transaction that has changed a balance, once.
SLEEP = """
CREATE FUNCTION sleep_once() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('test.has_slept', true), '') = '' THEN
        PERFORM set_config('test.has_slept', 'yes', true), pg_sleep({seconds});
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON accounts DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION sleep_once();
"""
WAKE = "DROP TRIGGER slow ON accounts; DROP FUNCTION sleep_once()"


@contextlib.asynccontextmanager
async def slow(url: str, world: World, *, seconds: float = SLOW_SECONDS) -> AsyncIterator[None]:
    """While the block runs, a commit takes as long as a bad disk."""
    if url.startswith("sqlite"):
        world.slow_syncs(seconds)
        yield
        world.mend()
        return
    operator = await asyncpg.connect(url)
    try:
        await operator.execute(SLEEP.format(seconds=seconds))
        yield
        await operator.execute(WAKE)
    finally:
        await operator.close()


async def test_a_store_whose_commits_take_long_is_slow_for_everybody_and_fails_nobody(
    url: str, tmp_path: Path, world: World
) -> None:
    async with houses.open_house(tmp_path, url, *world.words) as house:
        await house.accept("before")
        async with slow(url, world):
            # Those who come together wait together: not one after the other.
            responses = await asyncio.gather(*(house.post(f"slow {number}") for number in range(MANY)))
            assert {response.status_code for response in responses} == {202}
            assert (await house.client.get(f"{house.door.base_url}/readyz")).status_code == 200
            assert (await house.hand_in("slow by smtp"))[0] == 250
        await house.accept("after")
    await house.prove()


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_store_that_hangs_keeps_a_few_waiting_and_tells_all_others_to_come_back(
    url: str, tmp_path: Path, world: World
) -> None:
    limits = {"accept_seconds": 1, "accept_waiting": WAITING}
    async with houses.open_house(tmp_path, url, *world.words, limits=limits) as house:
        await house.accept("before")
        await house.finished()
        asked = world.syncs
        world.hold_syncs()
        first = asyncio.create_task(house.post("first"))
        await serving.until(lambda: asyncio.sleep(0, result=world.syncs > asked))
        # One commit is under way. So many may wait for it, and not for long; all others need not wait at all.
        others = await asyncio.gather(*(house.post(f"other {number}") for number in range(MANY)))
        for response in others:
            serving.check_refusal(response, 503, "temporary_failure")
        assert await house.hand_in("by smtp") == houses.BUSY
        assert len([one for one in others if "too many requests wait" in one.text]) >= MANY - WAITING - 1
        assert not first.done()
        # Nobody who only reads is kept from it.
        assert (await get(house, "/healthz")).status_code == 200
        shown = await get(house, f"/emails/{house.accepted['before']}")
        assert shown.json()["status"] == "delivered"
        # Whoever balances load sends new requests elsewhere.
        assert (await get(house, "/readyz")).status_code == 503

        world.mend()
        assert (await first).status_code == 202
        await house.accept(*(f"other {number}" for number in range(MANY)), "by smtp")
        assert (await get(house, "/readyz")).status_code == 200
    await house.prove()


async def test_however_many_push_a_slow_store_has_a_few_waiting_and_no_memory_of_the_others(
    url: str, tmp_path: Path, world: World
) -> None:
    async with houses.open_house(tmp_path, url, *world.words, limits={"accept_waiting": WAITING}) as house:
        crowd, process_id = crowds.Crowd(house), house.door.process.pid
        async with crowd.pushing(), slow(url, world, seconds=VERY_SLOW_SECONDS):
            await crowd.is_refused(SOME_REFUSALS)
            before = families.resident_bytes(process_id)
            await crowd.is_refused(MORE_REFUSALS)
            after = families.resident_bytes(process_id)
            assert (await get(house, "/healthz")).status_code == 200
        assert after - before < MORE_REFUSALS * len(crowds.LARGE) / 4
        await house.accept("after", "after by smtp")
    await house.prove()


async def get(house: houses.House, path: str) -> httpx.Response:
    return await house.client.get(f"{house.door.base_url}{path}", auth=house.login)
