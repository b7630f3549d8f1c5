"""A value is made once, for all who ask, and again only after a failure."""

import asyncio

import pytest

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
