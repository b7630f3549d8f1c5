"""Calls wait in a bounded queue, and each gets its own result or error."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from postroad import errors
from postroad.storage.engine import group_commit, store


class Doubler(group_commit.Commits[int, int]):
    """Doubles numbers when it is told to."""

    async def recover(self, write: Callable[[store.Transaction], Awaitable[None]]) -> None:
        raise NotImplementedError

    def _process(self, party: str) -> None:
        pass

    async def _drain(self) -> None:
        for taken in self._take_all():
            group_commit.answer(taken.result, 2 * taken.item)

    def take(self, party: str = "") -> group_commit.Call[int, int] | None:
        queue = self._queues.get(party)
        return None if queue is None else self._pop(queue)


def doubler(*, seconds: float = 60.0) -> Doubler:
    return Doubler(max_waiting=3, max_waiting_bytes=100, wait_seconds=seconds)


async def test_every_call_gets_its_own_result() -> None:
    calls = doubler()
    waiting = [asyncio.create_task(calls.submit(number)) for number in range(3)]
    await asyncio.sleep(0)
    await calls.close()
    assert await asyncio.gather(*waiting) == [0, 2, 4]


async def test_calls_beyond_the_limit_are_refused_until_one_is_taken() -> None:
    calls = doubler()
    for number in range(3):
        calls.start(number)
    with pytest.raises(errors.TemporaryFailure, match="too many"):
        calls.start(3)
    calls.take()
    calls.start(3)


async def test_bytes_beyond_the_limit_are_refused_but_one_call_may_have_any_size() -> None:
    calls = doubler()
    calls.start(1, size=1000)
    with pytest.raises(errors.TemporaryFailure, match="too many"):
        calls.start(2, size=1)
    calls.take()
    calls.start(2, size=50)
    calls.start(3, size=50)


def begun(calls: Doubler, party: str, *, size: int = 0) -> int:
    """How many calls of a party can wait."""
    count = 0
    with contextlib.suppress(errors.TemporaryFailure):
        while True:
            calls.start(count, party=party, size=size)
            count += 1
    return count


async def test_a_party_alone_gets_most_of_the_queue_and_the_next_one_has_room() -> None:
    calls = Doubler(max_waiting=100, max_waiting_bytes=1000, wait_seconds=60)
    assert begun(calls, "first") == 80
    assert begun(calls, "second") == 16
    assert begun(calls, "third") == 4
    calls.take("first")
    assert begun(calls, "fourth") == 1


async def test_bytes_are_shared_in_the_same_way() -> None:
    calls = Doubler(max_waiting=100, max_waiting_bytes=1000, wait_seconds=60)
    assert begun(calls, "first", size=20) == 40
    assert begun(calls, "second", size=20) == 8
    assert begun(calls, "third", size=20) == 2


async def test_calls_of_every_party_expire() -> None:
    calls = doubler(seconds=0.01)
    waiting = [calls.start(number, party=f"{number}") for number in range(3)]
    for one in waiting:
        with pytest.raises(errors.TemporaryFailure, match="in time"):
            await one
    assert calls.take("2") is None


async def test_callers_get_an_error_of_their_own() -> None:
    calls = doubler()
    futures = [calls.start(number) for number in range(2)]
    trouble = errors.ServiceUnavailable("disk full", retry_after=5)
    trouble.__cause__ = OSError("no space")
    group_commit.refuse([call for call in (calls.take(), calls.take()) if call is not None], trouble)
    first, second = (future.exception() for future in futures)
    assert first is not second
    assert [str(first), str(second)] == ["disk full"] * 2
    assert first is not None
    assert first.__cause__ is trouble.__cause__


async def test_nothing_is_accepted_after_closing() -> None:
    calls = doubler()
    await calls.close()
    with pytest.raises(errors.ServiceUnavailable, match="stopping"):
        calls.start(1)
