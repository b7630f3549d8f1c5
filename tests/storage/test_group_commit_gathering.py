"""Group commit: a busy service gathers calls, never waits long, and does not wait for a single call."""

import asyncio
from collections.abc import Callable

import pytest

from postroad.storage.engine import group_commit
from postroad.storage.engine.store import Store
from tests.storage.group_commits import Commit, Gate, Ledger, commit_on, results, submit_all

# Longer than any test runs: what waits for it does not end by itself.
LONG = 1000.0


@pytest.fixture
async def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the clock of the loop jump ahead, as if what is under way had taken so long."""
    loop = asyncio.get_running_loop()
    real, passed = loop.time, [0.0]
    monkeypatch.setattr(loop, "time", lambda: real() + passed[0])
    monkeypatch.setattr(group_commit, "MAX_GATHERING_SECONDS", LONG)
    return lambda: passed.append(passed.pop() + LONG)


async def commit_slowly(gate: Gate, commit: Commit, count: int, pass_time: Callable[[], None]) -> None:
    """A batch of so many that takes long, after which the gate stays open."""
    tasks = await submit_all(commit, range(count))
    await gate.reached.wait()
    pass_time()
    gate.opened.set()
    await results(tasks)


async def test_after_a_group_half_as_many_come_together(
    gate: Gate, ledger: Ledger, pass_time: Callable[[], None]
) -> None:
    commit = commit_on(gate, ledger, seconds=10 * LONG)
    await commit_slowly(gate, commit, 8, pass_time)
    tasks = []
    for number in range(8, 12):
        tasks += await submit_all(commit, [number])
    assert await results(tasks) == [80, 90, 100, 110]
    assert ledger.batches == [list(range(8)), [8, 9, 10, 11]]
    await commit.close()


async def test_those_who_wait_already_are_enough(gate: Gate, ledger: Ledger, pass_time: Callable[[], None]) -> None:
    commit = commit_on(gate, ledger, seconds=10 * LONG)
    tasks = await submit_all(commit, range(2))
    await gate.reached.wait()
    tasks += await submit_all(commit, [2, 3])
    pass_time()
    gate.opened.set()
    assert await results(tasks) == [0, 10, 20, 30]
    assert ledger.batches == [[0, 1], [2, 3]]
    await commit.close()


async def test_who_is_alone_never_waits_for_company(gate: Gate, ledger: Ledger, pass_time: Callable[[], None]) -> None:
    commit = commit_on(gate, ledger, seconds=10 * LONG)
    await commit_slowly(gate, commit, 1, pass_time)
    for number in range(1, 5):
        assert await asyncio.wait_for(commit.submit(number), 60) == number * 10
    await commit.close()


async def test_waiting_for_a_batch_that_does_not_fill_has_a_limit(store: Store, ledger: Ledger) -> None:
    commit = commit_on(store, ledger)
    await results(await submit_all(commit, range(8)))
    assert await asyncio.wait_for(commit.submit(8), 60) == 80
    assert ledger.batches == [list(range(8)), [8]]
    await commit.close()


async def test_a_stop_waits_for_no_company(gate: Gate, ledger: Ledger, pass_time: Callable[[], None]) -> None:
    commit = commit_on(gate, ledger, seconds=10 * LONG)
    await commit_slowly(gate, commit, 8, pass_time)
    tasks = await submit_all(commit, [8])
    await asyncio.wait_for(commit.close(), 60)
    assert await results(tasks) == [80]
