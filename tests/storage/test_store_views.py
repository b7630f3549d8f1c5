"""What both engines promise alike of a view: it stands still, changes nothing, and keeps nobody waiting."""

import asyncio

import pytest

from postroad import errors
from postroad.storage.engine.store import Store, TransactionAborted
from postroad.storage.people import credentials
from tests.storage import samples


async def version(store: Store) -> int:
    async with store.reading() as tx:
        return await credentials.access_version(tx)


@pytest.mark.parametrize("kind", ["reading", "scanning"])
async def test_a_view_stays_as_it_was_while_others_write(store: Store, kind: str) -> None:
    async with getattr(store, kind)() as view:
        before = await credentials.access_version(view)
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
        assert await credentials.access_version(view) == before
    assert await version(store) == before + 1


@pytest.mark.parametrize("kind", ["reading", "scanning"])
async def test_a_view_changes_nothing(store: Store, kind: str) -> None:
    with pytest.raises(errors.ServiceUnavailable):
        async with getattr(store, kind)() as view:
            await credentials.bump_access_version(view)
    assert await version(store) == 0


async def test_views_do_not_wait_for_a_transaction(store: Store) -> None:
    async with store.transaction() as tx:
        await credentials.bump_access_version(tx)
        assert await version(store) == 0
        async with store.scanning() as view:
            assert await credentials.access_version(view) == 0


async def test_many_more_views_than_connections_all_get_their_turn(store: Store) -> None:
    async def look(kind: str) -> int:
        async with getattr(store, kind)() as view:
            await asyncio.sleep(0)
            return await credentials.access_version(view)

    found = await asyncio.gather(*[look(kind) for kind in ("reading", "scanning") for _ in range(40)])
    assert found == [0] * 80


async def test_scans_of_one_account_keep_no_other_from_its_own(store: Store) -> None:
    end = asyncio.Event()

    async def hang() -> None:
        async with store.scanning("acc_greedy"):
            await end.wait()

    async with asyncio.timeout(60):
        hanging = [asyncio.create_task(hang()) for _ in range(20)]
        await asyncio.sleep(0.05)
        async with store.scanning("acc_modest") as view:
            assert await credentials.access_version(view) == 0
        async with store.scanning() as view:  # the service's own, such as the length of the queue
            assert await credentials.access_version(view) == 0
        end.set()
        await asyncio.gather(*hanging)


async def test_nothing_can_be_asked_after_a_failure(store: Store) -> None:
    samples.teach(store, wrong="SELEKT")
    async with store.reading() as tx:
        with pytest.raises(Exception, match="syntax error"):
            await tx.fetch("test.wrong")
        with pytest.raises(TransactionAborted):
            await credentials.access_version(tx)
    assert await version(store) == 0


async def test_failed_views_leave_the_store_usable(store: Store) -> None:
    samples.teach(store, wrong="SELECT no_such_column FROM accounts")
    for kind in ["reading", "looking_up", "scanning"] * 12:
        with pytest.raises(Exception, match="no_such_column"):
            async with getattr(store, kind)() as view:
                await view.fetch("test.wrong")
    assert await version(store) == 0


async def test_a_cancelled_scan_ends_at_once_and_frees_its_place(store: Store) -> None:
    samples.teach(store, slow=samples.SLOW)

    async def scan() -> None:
        async with store.scanning() as tx:
            await credentials.access_version(tx)
            await tx.fetch("test.slow")

    for _ in range(3):
        tasks = [asyncio.create_task(scan()) for _ in range(4)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=30)
        assert all(task.cancelled() for task in tasks)
    async with store.scanning() as tx:
        assert await credentials.access_version(tx) == 0


async def test_long_scans_keep_neither_look_ups_nor_mail_waiting(store: Store) -> None:
    samples.teach(store, slow=samples.SLOW)

    async def scan() -> None:
        async with store.scanning() as tx:
            await tx.fetch("test.slow")

    scans = [asyncio.create_task(scan()) for _ in range(12)]
    await asyncio.sleep(0.05)
    for _ in range(10):
        async with store.transaction() as tx:
            await credentials.bump_access_version(tx)
    assert await version(store) == 10
    assert len([scan for scan in scans if not scan.done()]) >= 4
    for task in scans:
        task.cancel()
    await asyncio.gather(*scans, return_exceptions=True)
