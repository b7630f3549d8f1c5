"""A store that is slow: sends take longer or are refused temporarily, health answers, and all recovers when it is fast.

On SQLite it is the disk that takes its time; on PostgreSQL a commit waits on the server.
"""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import pytest

from tests.reliability import client_load, process_trees, profile, service_process, whole_service
from tests.reliability.libc_faults import LibcFaults

SLOW_SECONDS = 0.3
MANY = 40
WAITING = 10
VERY_SLOW_SECONDS = 2.0
# Until everybody is connected, then until keeping each refusal would take 90 MB (27 MB in `make test`).
SOME_REFUSALS, MORE_REFUSALS = (500, 2000) if profile.IS_LONG else (150, 600)
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
async def slow(url: str, libc: LibcFaults, *, seconds: float = SLOW_SECONDS) -> AsyncIterator[None]:
    """While the block runs, a commit takes as long as a bad disk."""
    if url.startswith("sqlite"):
        libc.slow_syncs(seconds)
        yield
        libc.mend()
        return
    operator = await asyncpg.connect(url)
    try:
        await operator.execute(SLEEP.format(seconds=seconds))
        yield
        await operator.execute(WAKE)
    finally:
        await operator.close()


def started_with(url: str, libc: LibcFaults) -> tuple[str, ...]:
    """What to run the service under: nothing on PostgreSQL, where the service itself does not wait for the disk."""
    return libc.words if url.startswith("sqlite") else ()


async def test_a_store_whose_commits_take_long_is_slow_for_everybody_and_fails_nobody(
    url: str, tmp_path: Path, libc: LibcFaults
) -> None:
    # A busy machine may add more to the wait than the slow store does.
    limits = {"accept_seconds": 120}
    async with whole_service.running_service(tmp_path, url, *started_with(url, libc), limits=limits) as whole:
        await whole.accept("before")
        async with slow(url, libc):
            # Those who come together wait together: not one after the other.
            responses = await asyncio.gather(*(whole.post(f"slow {number}") for number in range(MANY)))
            assert {response.status_code for response in responses} == {202}
            assert (await whole.client.get(f"{whole.service.base_url}/readyz")).status_code == 200
            assert (await whole.hand_in("slow by smtp"))[0] == 250
        await whole.accept("after")
    await whole.prove()


async def is_quiet(libc: LibcFaults) -> bool:
    """Whether nothing is written for a while."""
    before = libc.syncs
    await asyncio.sleep(0.5)
    return libc.syncs == before


async def has_synced(libc: LibcFaults, before: int) -> bool:
    return libc.syncs > before


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_store_that_hangs_keeps_a_few_waiting_and_refuses_all_others_temporarily(
    url: str, tmp_path: Path, libc: LibcFaults
) -> None:
    limits = {"accept_seconds": 2, "accept_waiting": WAITING}
    async with whole_service.running_service(tmp_path, url, *libc.words, limits=limits) as whole:
        await whole.accept("before")
        await whole.finished()
        while not await hangs(whole, libc):
            pass
        await whole.accept(*(f"other {number}" for number in range(MANY)), "by smtp")
        assert (await get(whole, "/readyz")).status_code == 200
    await whole.prove()


async def hangs(whole: whole_service.WholeService, libc: LibcFaults) -> bool:
    """Hold a commit, check what the service does meanwhile, and let it go; whether it was the commit of a message.

    Others write as well, such as the report of the process that it runs. A message that waits for such a commit is
    refused as the others are.
    """
    # What is written after the response, such as the last use of the credential, should not be the commit that hangs.
    await service_process.until(lambda: is_quiet(libc))
    asked = libc.syncs
    libc.hold_syncs()
    first = asyncio.create_task(whole.post("first"))
    await service_process.until(functools.partial(has_synced, libc, asked))
    # One commit is under way. So many may wait for it, and not for long; all others need not wait at all.
    others = await asyncio.gather(*(whole.post(f"other {number}") for number in range(MANY)))
    for response in others:
        service_process.check_refusal(response, 503, "temporary_failure")
    assert await whole.hand_in("by smtp") == whole_service.BUSY
    assert len([one for one in others if "too many requests are waiting" in one.text]) >= MANY - WAITING - 1
    # Nobody who only reads is kept from it.
    assert (await get(whole, "/healthz")).status_code == 200
    shown = await get(whole, f"/emails/{whole.accepted['before']}")
    assert shown.json()["status"] == "delivered"
    # Whoever balances load sends new requests elsewhere.
    assert (await get(whole, "/readyz")).status_code == 503

    libc.mend()
    if (response := await first).status_code == 202:
        return True
    service_process.check_refusal(response, 503, "temporary_failure")
    return False


async def test_however_many_push_a_slow_store_has_a_few_waiting_and_no_memory_of_the_others(
    url: str, tmp_path: Path, libc: LibcFaults
) -> None:
    limits = {"accept_waiting": WAITING}
    async with whole_service.running_service(tmp_path, url, *started_with(url, libc), limits=limits) as whole:
        crowd, process_id = client_load.ClientLoad(whole), whole.service.process.pid
        async with slow(url, libc, seconds=VERY_SLOW_SECONDS), crowd.pushing():
            await crowd.is_refused(SOME_REFUSALS)
            before = process_trees.resident_bytes(process_id)
            await crowd.is_refused(MORE_REFUSALS)
            after = process_trees.resident_bytes(process_id)
            assert (await get(whole, "/healthz")).status_code == 200
        assert after - before < MORE_REFUSALS * len(client_load.LARGE) / 4
        await whole.accept("after", "after by smtp")
    await whole.prove()


async def get(whole: whole_service.WholeService, path: str) -> httpx.Response:
    return await whole.client.get(f"{whole.service.base_url}{path}", auth=whole.login)
