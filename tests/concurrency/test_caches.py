"""A value is made once, for all who ask, and again only after a failure."""

import asyncio
from dataclasses import dataclass

import pytest

from postroad import errors
from postroad.concurrency import caches


class Maker:
    def __init__(self, *problems: Exception) -> None:
        self.times = 0
        self._problems = list(problems)

    async def __call__(self) -> str:
        self.times += 1
        await asyncio.sleep(0)
        if self._problems:
            raise self._problems.pop()
        return f"made {self.times}"


async def test_all_who_ask_at_once_get_one_value() -> None:
    make = Maker()
    value = caches.LazyValue(make)
    assert make.times == 0
    assert await asyncio.gather(*(value.get() for _ in range(10))) == ["made 1"] * 10
    assert await value.get() == "made 1"
    assert make.times == 1


async def test_what_could_not_be_made_is_tried_again() -> None:
    value = caches.LazyValue(Maker(OSError("no file")))
    with pytest.raises(OSError, match="no file"):
        await value.get()
    assert await value.get() == "made 2"


# A dictionary that lets go of what was used least lately.


def test_what_was_used_least_lately_goes_first() -> None:
    values: caches.LruCache[str, int] = caches.LruCache(2)
    values.put("a", 1)
    values.put("b", 2)
    assert values.get("a") == 1
    values.put("c", 3)
    assert [values.get(key) for key in "abc"] == [1, None, 3]
    assert len(values) == 2


def test_room_is_made_only_when_there_is_none() -> None:
    values: caches.LruCache[str, int] = caches.LruCache(2)
    values.put("a", 1)
    assert values.evict() is None
    values.put("b", 2)
    assert values.evict() == 1
    assert (values.get("a"), values.get("b")) == (None, 2)


# Work that many ask for is done once, and belongs to nobody.


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


# The memory of look-ups.


@dataclass(frozen=True, slots=True)
class Fact:
    text: str
    valid_until: float


class CacheHarness:
    """A clock that stands still, and a source that answers when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def find(self, name: str) -> Fact:
        self.asked.append(name)
        await self.go_on.wait()
        if name == "broken":
            raise RuntimeError(name)
        return Fact(name, self.now + 10)

    def memory(self, most: int = 10) -> caches.TtlCache[Fact]:
        return caches.TtlCache(max_entries=most, clock=lambda: self.now)


async def test_a_value_is_looked_up_once_while_it_is_valid() -> None:
    harness = CacheHarness()
    memory = harness.memory()
    assert memory.get("a") is None
    assert await memory.get_or_fetch("a", harness.find) == Fact("a", 110)
    assert await memory.get_or_fetch("a", harness.find) == memory.get("a") == Fact("a", 110)
    assert harness.asked == ["a"]
    harness.now = 110
    assert (memory.get("a"), memory.peek("a")) == (None, Fact("a", 110))
    assert await memory.get_or_fetch("a", harness.find) == Fact("a", 120)
    assert harness.asked == ["a", "a"]


async def test_many_who_ask_at_once_share_one_look_up_and_one_who_leaves_does_not_end_it() -> None:
    harness = CacheHarness()
    memory = harness.memory()
    harness.go_on.clear()
    tasks = [asyncio.create_task(memory.get_or_fetch("a", harness.find)) for _ in range(5)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    harness.go_on.set()
    assert await asyncio.gather(*tasks[1:]) == [Fact("a", 110)] * 4
    assert harness.asked == ["a"]


async def test_a_look_up_that_fails_is_an_error_for_each_who_waits_and_is_not_remembered() -> None:
    harness = CacheHarness()
    memory = harness.memory()
    results = await asyncio.gather(
        *(memory.get_or_fetch("broken", harness.find) for _ in range(2)), return_exceptions=True
    )
    assert [str(result) for result in results] == ["broken", "broken"]
    with pytest.raises(RuntimeError):
        await memory.get_or_fetch("broken", harness.find)
    assert harness.asked == ["broken", "broken"]


async def test_what_was_put_first_goes_first() -> None:
    harness = CacheHarness()
    memory = harness.memory(most=2)
    memory.put("a", Fact("a", 200))
    memory.put("b", Fact("b", 200))
    memory.put("a", Fact("a", 300))
    memory.put("c", Fact("c", 200))
    assert memory.get("b") is None
    assert memory.get("a") == Fact("a", 300)
    assert memory.get("c") == Fact("c", 200)


async def test_closing_ends_what_is_under_way() -> None:
    harness = CacheHarness()
    memory = harness.memory()
    await memory.close()
    harness.go_on.clear()
    task = asyncio.create_task(memory.get_or_fetch("a", harness.find))
    await asyncio.sleep(0)
    await memory.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert memory.get("a") is None
