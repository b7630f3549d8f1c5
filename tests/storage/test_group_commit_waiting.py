"""Group commit: every wait is bounded, and every caller is answered, also after a cancellation or a stop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from postroad import errors
from postroad.storage.engine.store import Store, Transaction
from tests.storage import samples
from tests.storage.group_commits import STOPPED, Gate, Ledger, commit_on, hold_first, results, submit_all


async def test_whoever_goes_away_while_waiting_is_not_stored(gate: Gate, ledger: Ledger, store: Store) -> None:
    commit = commit_on(gate, ledger)
    first = await hold_first(commit, gate)
    tasks = await submit_all(commit, [1, 2, 3])
    tasks[1].cancel()
    await asyncio.wait([tasks[1]])
    gate.opened.set()
    assert await results([first, tasks[0], tasks[2]]) == [0, 10, 30]
    assert ledger.batches == [[0], [1, 3]]
    assert await samples.count(store, "ledger") == 3


async def test_whoever_goes_away_during_the_commit_is_stored_and_disturbs_nobody(
    gate: Gate, ledger: Ledger, store: Store
) -> None:
    commit = commit_on(gate, ledger)
    tasks = await submit_all(commit, [1, 2, 3])
    await gate.reached.wait()
    tasks[1].cancel()
    await asyncio.wait([tasks[1]])
    gate.opened.set()
    assert await results([tasks[0], tasks[2]]) == [10, 30]
    assert await samples.count(store, "ledger") == 3


async def test_everybody_going_away_leaves_it_usable(gate: Gate, ledger: Ledger) -> None:
    commit = commit_on(gate, ledger)
    first = await hold_first(commit, gate)
    for task in [first, *await submit_all(commit, [1, 2, 3])]:
        task.cancel()
    await asyncio.sleep(0)
    gate.opened.set()
    assert await commit.submit(4) == 40
    await commit.close()


async def test_the_line_has_a_weight(gate: Gate, ledger: Ledger) -> None:
    commit = commit_on(gate, ledger, size=100)  # so 6,400 bytes may wait
    first = await hold_first(commit, gate)
    tasks = await submit_all(commit, range(1, 9), size=640)
    with pytest.raises(errors.TemporaryFailure):
        await commit.submit(9, size=1)
    gate.opened.set()
    assert await results([first, *tasks]) == [number * 10 for number in range(9)]
    assert await commit.submit(9, size=10_000) == 90  # alone, an item may be of any size
    assert await results(await submit_all(commit, range(10, 18), size=100)) == [n * 10 for n in range(10, 18)]


async def test_nobody_waits_longer_than_allowed_for_a_store_that_hangs(gate: Gate, ledger: Ledger) -> None:
    commit = commit_on(gate, ledger, seconds=0.05)
    first = await hold_first(commit, gate)
    waiting = await submit_all(commit, [1, 2, 3])
    outcomes = await results(waiting)  # the gate is still closed
    assert {type(outcome) for outcome in outcomes} == {errors.TemporaryFailure}
    later = await submit_all(commit, [4])
    assert [type(outcome) for outcome in await results(later)] == [errors.TemporaryFailure]
    gate.opened.set()
    assert await first == 0
    assert ledger.batches == [[0]]
    commit._wait_seconds = 60
    assert await commit.submit(5) == 50


async def test_closing_waits_for_all_that_was_submitted_and_takes_no_more(gate: Gate, ledger: Ledger) -> None:
    commit = commit_on(gate, ledger, items=2)
    first = await hold_first(commit, gate)
    tasks = await submit_all(commit, range(1, 8))
    closing = asyncio.create_task(commit.close())
    await asyncio.sleep(0)
    with pytest.raises(errors.ServiceUnavailable):
        await commit.submit(8)
    assert not closing.done()
    gate.opened.set()
    await asyncio.wait_for(closing, 60)
    assert all(task.done() for task in [first, *tasks])
    assert await results([first, *tasks]) == [number * 10 for number in range(8)]


async def test_a_runner_that_is_stopped_leaves_nobody_waiting(gate: Gate, ledger: Ledger, store: Store) -> None:
    commit = commit_on(gate, ledger)
    first = await hold_first(commit, gate)
    tasks = await submit_all(commit, [1, 2, 3])
    assert commit._runner is not None
    commit._runner.cancel()
    outcomes = await results([first, *tasks])
    assert {type(outcome) for outcome in outcomes} == {errors.ServiceUnavailable}
    assert await samples.count(store, "ledger") == 0
    gate.opened.set()
    assert await commit.submit(5) == 50
    await commit.close()


async def test_a_runner_that_is_stopped_before_it_began_leaves_nobody_waiting(store: Store, ledger: Ledger) -> None:
    commit = commit_on(store, ledger)
    tasks = await submit_all(commit, [1, 2])
    assert commit._runner is not None
    commit._runner.cancel()
    outcomes = await results(tasks)
    assert {type(outcome) for outcome in outcomes} == {errors.ServiceUnavailable}

    tasks = await submit_all(commit, [1, 2])
    commit._runner.cancel()
    late = asyncio.create_task(commit.submit(3))  # starts another runner, which serves them all
    assert await results([*tasks, late]) == [10, 20, 30]
    assert await commit.submit(4) == 40


async def test_an_operation_that_is_cancelled_from_within_leaves_nobody_waiting(store: Store, ledger: Ledger) -> None:
    commit = commit_on(store, ledger)
    outcomes = await results(await submit_all(commit, [1, STOPPED, 2]))
    assert {type(outcome) for outcome in outcomes} == {errors.ServiceUnavailable}
    assert await samples.count(store, "ledger") == 0
    assert await commit.submit(3) == 30


def test_an_interrupt_from_the_keyboard_leaves_nobody_waiting() -> None:
    """It breaks out of the event loop; whoever still waits is answered when the loop is wound up."""

    class Interrupted:
        dialect = "none"

        @contextlib.asynccontextmanager
        async def transaction(self, _party: str = "") -> AsyncIterator[Transaction]:
            if self.dialect == "none":
                raise KeyboardInterrupt
            yield  # type: ignore[misc]

        leasing = reading = looking_up = scanning = transaction

        async def close(self) -> None:
            pass

    async def submit_three() -> None:
        commit = commit_on(Interrupted(), Ledger())
        tasks.extend([asyncio.ensure_future(commit.submit(number)) for number in range(3)])
        await asyncio.wait(tasks)

    tasks: list[asyncio.Task[int]] = []
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(submit_three())
    assert len(tasks) == 3
    assert all(task.done() for task in tasks)
    for task in tasks:
        assert task.cancelled() or isinstance(task.exception(), errors.ServiceUnavailable)
