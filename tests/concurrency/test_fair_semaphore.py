"""Who waits for a share, and who gets it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from postroad.concurrency import fairness


@contextlib.asynccontextmanager
async def held(semaphore: fairness.FairSemaphore, name: str, count: int) -> AsyncIterator[None]:
    """So many units are held meanwhile, or waited for."""
    end = asyncio.Event()

    async def hold() -> None:
        async with semaphore.hold(name):
            await end.wait()

    tasks = [asyncio.create_task(hold()) for _ in range(count)]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        end.set()
        await asyncio.gather(*tasks)


async def test_somebody_else_gets_a_unit_at_once_however_many_one_wants() -> None:
    semaphore = fairness.FairSemaphore(10)
    async with held(semaphore, "greedy", 1000), asyncio.timeout(60), semaphore.hold("modest"):
        pass


async def test_equals_come_in_turn() -> None:
    semaphore = fairness.FairSemaphore(1)
    order: list[str] = []

    async def take(name: str) -> None:
        async with semaphore.hold(name):
            order.append(name)

    async with semaphore.hold("first"):
        waiting = [asyncio.create_task(take(name)) for name in ("a", "a", "a", "b")]
        await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert order == ["a", "b", "a", "a"]


async def test_who_gives_up_waiting_takes_nothing_along() -> None:
    semaphore = fairness.FairSemaphore(1)
    async with semaphore.hold("first"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), semaphore.hold("second"):
                pytest.fail("there was nothing to hold")
        waiting = asyncio.create_task(semaphore.hold("third").__aenter__())
        await asyncio.sleep(0)
    waiting.cancel()  # it has its turn already, and gives it back
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(60), semaphore.hold("fourth"):
        pass


async def test_those_who_give_up_when_a_unit_comes_back_are_passed_over() -> None:
    semaphore = fairness.FairSemaphore(1)
    async with semaphore.hold("first"):
        waiting = [asyncio.create_task(semaphore.hold(name).__aenter__()) for name in ("a", "a", "b", "c")]
        await asyncio.sleep(0)
        for gone in waiting[:3]:
            gone.cancel()
    async with asyncio.timeout(60):
        await waiting[3]
        results = await asyncio.gather(*waiting[:3], return_exceptions=True)
    assert [type(result) for result in results] == [asyncio.CancelledError] * 3


async def test_a_timeout_ends_the_wait_and_not_the_work() -> None:
    semaphore = fairness.FairSemaphore(1)
    async with semaphore.hold("first", timeout=0):
        await asyncio.sleep(0.01)
        with pytest.raises(TimeoutError):
            async with semaphore.hold("second", timeout=0):
                pytest.fail("there was nothing to hold")
    async with asyncio.timeout(60), semaphore.hold("third"):
        pass


async def test_who_holds_less_comes_first() -> None:
    semaphore = fairness.FairSemaphore(5)
    order: list[str] = []

    async def take(name: str) -> None:
        async with semaphore.hold(name):
            order.append(name)

    async with held(semaphore, "busy", 4):
        async with semaphore.hold("other"):
            waiting = [asyncio.create_task(take(name)) for name in ("busy", "idle")]
            await asyncio.sleep(0)
            assert order == []
        await asyncio.sleep(0.01)
        assert order == ["idle"]
    await asyncio.gather(*waiting)


async def test_who_is_cancelled_at_the_moment_of_its_turn_leaves_it_to_the_next() -> None:
    semaphore = fairness.FairSemaphore(1)
    async with semaphore.hold("first"):
        second, third = (asyncio.create_task(semaphore.hold(name).__aenter__()) for name in ("second", "third"))
        await asyncio.sleep(0)
        second.cancel()
    async with asyncio.timeout(60):
        await third
    assert (await asyncio.gather(second, return_exceptions=True))[0].__class__ is asyncio.CancelledError
    assert not semaphore.is_contended
