"""Permits: so many connections over all provider queues, half of them for destinations that are not proven."""

import asyncio
import contextlib

import pytest

from postroad.delivery import permits


class Holder:
    """Somebody who takes a permit and keeps it until told."""

    def __init__(self, shared: permits.Permits, *, proven: bool) -> None:
        self.has_it = False
        self._release = asyncio.Event()
        self.task = asyncio.create_task(self._hold(shared, proven))

    async def _hold(self, shared: permits.Permits, proven: bool) -> None:  # noqa: FBT001 - a test's own
        async with shared.acquire(proven=proven):
            self.has_it = True
            await self._release.wait()

    async def let_go(self) -> None:
        self._release.set()
        await self.task


async def turn() -> None:
    """Let everybody come as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


def holding(holders: list[Holder]) -> int:
    return sum(holder.has_it for holder in holders)


async def test_unproven_destinations_leave_half_of_the_connections_to_the_others() -> None:
    shared = permits.Permits(4)
    unproven = [Holder(shared, proven=False) for _ in range(5)]
    await turn()
    assert holding(unproven) == 2
    proven = [Holder(shared, proven=True) for _ in range(3)]
    await turn()
    assert (holding(unproven), holding(proven)) == (2, 2)
    for holder in (*proven[:2], *unproven[:2], proven[2], *unproven[2:]):
        await turn()
        await holder.let_go()


async def test_proven_destinations_may_have_all_connections_and_each_that_is_given_back_is_used() -> None:
    shared = permits.Permits(2)
    holders = [Holder(shared, proven=True) for _ in range(3)]
    await turn()
    assert holding(holders) == 2
    await holders[0].let_go()
    await turn()
    assert holding(holders) == 3
    await holders[1].let_go()
    await holders[2].let_go()


async def test_a_single_connection_serves_everybody() -> None:
    shared = permits.Permits(1)
    for proven in (False, True, False):
        async with shared.acquire(proven=proven):
            pass


@pytest.mark.parametrize("proven", [True, False])
async def test_a_permit_comes_back_after_an_error_and_one_that_was_waited_for_after_a_cancellation(
    *, proven: bool
) -> None:
    shared = permits.Permits(1)
    with contextlib.suppress(RuntimeError):
        async with shared.acquire(proven=proven):
            raise RuntimeError
    first = Holder(shared, proven=proven)
    await turn()
    second = Holder(shared, proven=proven)
    await turn()
    second.task.cancel()
    await turn()
    assert second.task.cancelled()
    await first.let_go()
    third = Holder(shared, proven=proven)
    await turn()
    assert third.has_it
    await third.let_go()
