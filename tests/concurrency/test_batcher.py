"""Calls wait in a bounded queue, and each gets its own result or error."""

import asyncio

import pytest

from postroad import errors
from postroad.concurrency import batcher


class Doubler(batcher.Batcher[int, int]):
    """Doubles numbers when it is told to."""

    def _process(self) -> None:
        pass

    async def _drain(self) -> None:
        while (taken := self.take()) is not None:
            batcher.answer(taken.result, 2 * taken.item)

    def take(self, max_bytes: int | None = None) -> batcher.Call[int, int] | None:
        return self._take(max_bytes=max_bytes)


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


async def test_a_call_is_taken_if_it_is_not_too_large_and_its_caller_waits() -> None:
    calls = doubler()
    cancelled, _, _ = (calls.start(number, size=number) for number in (10, 20, 30))
    cancelled.cancel()
    taken = calls.take(max_bytes=20)
    assert taken is not None
    assert taken.item == 20
    assert calls.take(max_bytes=29) is None


async def test_a_call_that_waits_too_long_is_refused_and_not_taken() -> None:
    calls = doubler(seconds=0.01)
    first = calls.start(1)
    with pytest.raises(errors.TemporaryFailure, match="in time"):
        await first
    assert calls.take() is None


async def test_callers_get_an_error_of_their_own() -> None:
    calls = doubler()
    futures = [calls.start(number) for number in range(2)]
    trouble = errors.ServiceUnavailable("disk full", retry_after=5)
    trouble.__cause__ = OSError("no space")
    batcher.refuse([call for call in (calls.take(), calls.take()) if call is not None], trouble)
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
