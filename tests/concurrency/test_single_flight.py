"""Work that many ask for is done once, and belongs to nobody."""

import asyncio

import pytest

from postroad import errors
from postroad.concurrency import caches


class Work:
    """Work that ends when told to."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.times = 0
        self.problem: Exception | None = None

    async def __call__(self) -> int:
        self.times += 1
        await self.may_end.wait()
        if self.problem:
            raise self.problem
        return self.times


async def started(*waiting: "asyncio.Task[int]") -> None:
    """Let tasks run until they wait."""
    for _ in range(3):
        await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)


def flying() -> caches.SingleFlight:
    return caches.SingleFlight(2, what="things")


async def test_those_who_come_while_it_runs_share_it_and_those_who_come_later_do_not() -> None:
    together, work = flying(), Work()
    waiting = [asyncio.create_task(together.join("a", work)) for _ in range(5)]
    await started(*waiting)
    work.may_end.set()
    assert await asyncio.gather(*waiting) == [1] * 5
    assert await together.join("a", work) == 2


async def test_names_do_not_share() -> None:
    together, work = flying(), Work()
    work.may_end.set()
    assert sorted(await asyncio.gather(together.join("a", work), together.join("b", work))) == [1, 2]


async def test_a_failure_is_raised_to_all_and_not_cached() -> None:
    together, work = flying(), Work()
    work.problem = ValueError("no")
    waiting = [asyncio.create_task(together.join("a", work)) for _ in range(2)]
    await started(*waiting)
    work.may_end.set()
    for task in waiting:
        with pytest.raises(ValueError, match="no"):
            await task
    work.problem = None
    assert await together.join("a", work) == 2


async def test_it_ends_also_when_all_who_wanted_it_have_gone() -> None:
    together, work = flying(), Work()
    first = asyncio.create_task(together.join("a", work))
    await started(first)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    second = asyncio.create_task(together.join("a", work))
    await started(second)
    work.may_end.set()
    assert await second == 1


async def test_more_than_so_many_are_refused_but_may_join_those_under_way() -> None:
    together, work = flying(), Work()
    waiting = [asyncio.create_task(together.join(name, work)) for name in "abab"]
    await started(*waiting)
    with pytest.raises(errors.ServiceUnavailable, match="too many things"):
        await together.join("c", work)
    work.may_end.set()
    assert await asyncio.gather(*waiting) == [2] * 4
    assert await together.join("c", work) == 3


async def test_closing_waits_for_what_is_under_way_and_begins_nothing_more() -> None:
    together, work = flying(), Work()
    work.problem = ValueError("no")
    waiting = asyncio.create_task(together.join("a", work))
    await started(waiting)
    closing = asyncio.create_task(together.close())
    await asyncio.sleep(0)
    with pytest.raises(errors.ServiceUnavailable):
        await together.join("b", work)
    assert not closing.done()
    work.may_end.set()
    await closing
    with pytest.raises(ValueError, match="no"):
        await waiting


async def test_work_can_be_started_without_waiting_and_close_waits_for_it() -> None:
    flights = caches.SingleFlight(2, what="checks")
    done: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0)
        done.append(1)

    flights.start("name", work)
    flights.start("name", work)
    assert done == []
    await flights.close()
    assert done == [1]
    with pytest.raises(errors.ServiceUnavailable):
        flights.start("name", work)


async def test_one_who_starts_much_leaves_flights_for_others() -> None:
    together, work = caches.SingleFlight(10, what="things"), Work()
    waiting = [asyncio.create_task(together.join(number, work, party="greedy")) for number in range(8)]
    await started(*waiting)
    with pytest.raises(errors.ServiceUnavailable, match="too many things"):
        await together.join("another", work, party="greedy")
    waiting.append(asyncio.create_task(together.join("mine", work, party="modest")))
    await started(*waiting)
    work.may_end.set()
    await asyncio.gather(*waiting)
