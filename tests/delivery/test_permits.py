"""Permits: so many connections over all provider queues, shared by accounts, and less for what is slow."""

import asyncio
import contextlib

import pytest

from postroad.delivery import permits


class Holder:
    """Somebody who takes a permit and keeps it until told."""

    def __init__(self, shared: permits.Permits, account_id: str = "acc_1", *, is_responsive: bool = True) -> None:
        self.permit: permits.Permit | None = None
        self.slow_count = 0
        self._ended = asyncio.Event()
        self._release = asyncio.Event()
        self.task = asyncio.create_task(self._hold(shared, account_id, is_responsive))

    async def _hold(self, shared: permits.Permits, account_id: str, is_responsive: bool) -> None:  # noqa: FBT001 - a test's own
        async with shared.acquire(account_id, is_responsive=is_responsive, on_slow=self._on_slow) as self.permit:
            assert self.permit.begin(account_id, is_responsive=is_responsive)
            shared.watch(self.permit)
            await self._ended.wait()
            shared.working.pop(self.permit, None)
            await self._release.wait()

    def _on_slow(self) -> None:
        self.slow_count += 1

    @property
    def held(self) -> permits.Permit:
        assert self.permit is not None
        return self.permit

    async def end_attempt(self) -> None:
        """The attempt has ended; what follows may take its time."""
        self._ended.set()
        await turn()

    def let_go(self) -> None:
        self._ended.set()
        self._release.set()


async def turn() -> None:
    """Let everybody come as far as they can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def take(
    shared: permits.Permits, count: int, account_id: str = "acc_1", *, is_responsive: bool = True
) -> list[Holder]:
    holders = [Holder(shared, account_id, is_responsive=is_responsive) for _ in range(count)]
    await turn()
    return holders


def holding(holders: list[Holder]) -> int:
    return sum(holder.permit is not None for holder in holders)


async def end(*groups: list[Holder]) -> None:
    for holders in groups:
        for holder in holders:
            holder.let_go()
    await asyncio.gather(*(holder.task for holders in groups for holder in holders))


async def test_an_account_alone_gets_nearly_all_and_another_one_finds_some() -> None:
    shared = permits.Permits(10)
    greedy = await take(shared, 100)
    assert holding(greedy) == 8
    other = await take(shared, 1, "acc_2")
    assert holding(other) == 1
    await end(other, greedy)
    assert holding(greedy) == 100


async def test_slow_destinations_leave_half_of_the_connections_to_quick_ones_of_the_same_account() -> None:
    shared = permits.Permits(10)
    slow = await take(shared, 20, is_responsive=False)
    assert holding(slow) == 5
    quick = await take(shared, 20)
    assert (holding(slow), holding(quick)) == (5, 3)
    await end(quick, slow)


async def test_what_is_slow_of_many_accounts_leaves_something_to_what_is_quick() -> None:
    shared = permits.Permits(34)
    slow = [await take(shared, 1, f"acc_{number}", is_responsive=False) for number in range(100)]
    assert sum(map(holding, slow)) == 31
    quick = await take(shared, 1, "acc_quick")
    assert holding(quick) == 1
    await end(quick, *slow)


async def test_slow_connections_of_one_account_do_not_keep_another_account_from_a_new_destination(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(permits, "SLOW_SECONDS", 0.01)
    shared = permits.Permits(50)
    holding_on = await take(shared, 100)
    assert holding(holding_on) == 40
    while sum(holder.slow_count for holder in holding_on) < 40:
        await asyncio.sleep(0.01)
    assert all(holder.held.was_slow for holder in holding_on[:40])
    more = await take(shared, 1, is_responsive=False)
    other = await take(shared, 1, "acc_2", is_responsive=False)
    assert (holding(more), holding(other)) == (0, 1)
    await end(other, holding_on, more)


async def test_a_job_that_only_waits_for_its_attempt_turns_nothing_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permits, "SLOW_SECONDS", 0.01)
    shared = permits.Permits(2)
    turned: list[None] = []
    async with shared.acquire("acc_1", is_responsive=True, on_slow=lambda: turned.append(None)) as waiting:
        assert waiting.begin("acc_1", is_responsive=True)
        (other,) = await take(shared, 1)
        while not other.slow_count:
            await asyncio.sleep(0.01)
        assert (turned, waiting.was_slow) == ([], False)
        await end([other])


async def test_a_job_that_ends_in_time_turns_nothing_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permits, "SLOW_SECONDS", 0.01)
    shared = permits.Permits(2)
    first, second = await take(shared, 2)
    await first.end_attempt()
    while not second.slow_count:
        await asyncio.sleep(0.01)
    assert (first.slow_count, first.held.was_slow) == (0, False)
    assert second.held.begin("acc_1", is_responsive=False)
    assert not second.held.was_slow
    await end([first, second])


async def test_a_permit_counts_for_the_account_of_its_job() -> None:
    shared = permits.Permits(5)
    first = await take(shared, 10)
    assert holding(first) == 4
    # The second account gets one of the first, and then the first account may have another.
    assert first[0].held.begin("acc_2", is_responsive=True)
    await turn()
    assert holding(first) == 5
    # Somebody who holds less waits, so the first account does not go on with its next job.
    other = await take(shared, 1, "acc_3")
    assert holding(other) == 0
    assert not first[1].held.begin("acc_1", is_responsive=True)
    first[1].let_go()
    await turn()
    assert holding(other) == 1
    await end(other, first)


async def test_a_permit_that_nobody_waits_for_is_used_on_without_a_look_at_the_shares() -> None:
    shared = permits.Permits(5)
    first, second = await take(shared, 4), await take(shared, 1, "acc_2")
    assert (holding(first), holding(second)) == (4, 1)
    assert first[0].held.begin("acc_1", is_responsive=True)
    await end(first, second)


async def test_the_connection_that_was_idle_longest_closes_when_somebody_waits() -> None:
    shared = permits.Permits(2)
    idle = await take(shared, 2)
    for holder in idle:
        await holder.end_attempt()
        holder.held.begin_idle(holder.let_go)
    other = await take(shared, 1, "acc_2")
    assert holding(other) == 1
    assert [holder.task.done() for holder in idle] == [True, False]
    await end(idle, other)


async def test_an_idle_connection_stays_open_when_closing_it_would_help_nobody() -> None:
    shared = permits.Permits(5)
    slow = await take(shared, 3, is_responsive=False)
    assert holding(slow) == 3
    (idle,) = await take(shared, 1, "acc_2")
    await idle.end_attempt()
    wanted = [idle.held.is_wanted]
    idle.held.begin_idle(idle.let_go)
    waiting = await take(shared, 1, is_responsive=False)
    assert holding(waiting) == 0
    assert not idle.task.done()
    wanted.append(idle.held.is_wanted)
    slow[0].let_go()
    await turn()
    assert holding(waiting) == 0
    assert [*wanted, idle.held.is_wanted] == [False, False, True]
    await end([idle], slow, waiting)


@pytest.mark.parametrize("is_responsive", [True, False])
async def test_a_single_connection_serves_everybody(*, is_responsive: bool) -> None:
    shared = permits.Permits(1)
    for account_id in ("acc_1", "acc_2", "acc_1"):
        await end(await take(shared, 1, account_id, is_responsive=is_responsive))


@pytest.mark.parametrize("is_responsive", [True, False])
async def test_a_permit_comes_back_after_an_error_and_one_that_was_waited_for_after_a_cancellation(
    *, is_responsive: bool
) -> None:
    shared = permits.Permits(1)
    with contextlib.suppress(RuntimeError):
        async with shared.acquire("acc_1", is_responsive=is_responsive, on_slow=lambda: None):
            raise RuntimeError
    first = await take(shared, 1, is_responsive=is_responsive)
    (second,) = await take(shared, 1, is_responsive=is_responsive)
    second.task.cancel()
    await turn()
    assert second.task.cancelled()
    await end(first)
    third = await take(shared, 1, is_responsive=is_responsive)
    assert holding(third) == 1
    await end(third)
