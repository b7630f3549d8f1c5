"""The memory of look-ups: valid or not there, bounded, and one look-up for all who ask at once."""

import asyncio
from dataclasses import dataclass

import pytest

from postroad.services import expiring


@dataclass(frozen=True, slots=True)
class Fact:
    text: str
    valid_until: float


class World:
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

    def memory(self, most: int = 10) -> expiring.Expiring[Fact]:
        return expiring.Expiring(most=most, clock=lambda: self.now)


async def test_a_value_is_looked_up_once_while_it_is_valid() -> None:
    world = World()
    memory = world.memory()
    assert memory.get("a") is None
    assert await memory.recall("a", world.find) == Fact("a", 110)
    assert await memory.recall("a", world.find) == memory.get("a") == Fact("a", 110)
    assert world.asked == ["a"]
    world.now = 110
    assert memory.get("a") is None
    assert await memory.recall("a", world.find) == Fact("a", 120)
    assert world.asked == ["a", "a"]


async def test_many_who_ask_at_once_share_one_look_up_and_one_who_leaves_does_not_end_it() -> None:
    world = World()
    memory = world.memory()
    world.go_on.clear()
    tasks = [asyncio.create_task(memory.recall("a", world.find)) for _ in range(5)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    await asyncio.wait(tasks[:1])
    world.go_on.set()
    assert await asyncio.gather(*tasks[1:]) == [Fact("a", 110)] * 4
    assert world.asked == ["a"]


async def test_a_look_up_that_fails_is_an_error_for_each_who_waits_and_is_not_remembered() -> None:
    world = World()
    memory = world.memory()
    results = await asyncio.gather(*(memory.recall("broken", world.find) for _ in range(2)), return_exceptions=True)
    assert [str(result) for result in results] == ["broken", "broken"]
    with pytest.raises(RuntimeError):
        await memory.recall("broken", world.find)
    assert world.asked == ["broken", "broken"]


async def test_what_was_put_first_goes_first() -> None:
    world = World()
    memory = world.memory(most=2)
    memory.put("a", Fact("a", 200))
    memory.put("b", Fact("b", 200))
    memory.put("a", Fact("a", 300))
    memory.put("c", Fact("c", 200))
    assert memory.get("b") is None
    assert memory.get("a") == Fact("a", 300)
    assert memory.get("c") == Fact("c", 200)


async def test_closing_ends_what_is_under_way() -> None:
    world = World()
    memory = world.memory()
    await memory.close()
    world.go_on.clear()
    task = asyncio.create_task(memory.recall("a", world.find))
    await asyncio.sleep(0)
    await memory.close()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert memory.get("a") is None
