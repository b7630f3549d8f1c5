"""The memory of look-ups: valid or not there, bounded, and one look-up for all who ask at once."""

import asyncio
from dataclasses import dataclass

import pytest

from postroad.concurrency import caches


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
