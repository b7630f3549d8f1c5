"""Group commit: few transactions for many calls, a failing call affects no other, and no call is lost."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any

import pytest

from postroad import errors
from postroad.storage.engine import group_commit
from postroad.storage.engine.store import ConstraintViolated, Store, Transaction
from postroad.storage.people import credentials
from tests.storage import samples
from tests.storage.group_commits import (
    HOPELESS,
    MISCOUNTED,
    POISON,
    Commit,
    Gate,
    Ledger,
    commit_on,
    hold_first,
    results,
    submit_all,
)


async def test_calls_of_one_moment_are_one_transaction(store: Store, ledger: Ledger) -> None:
    commit = commit_on(store, ledger)
    tasks = await submit_all(commit, range(50))
    assert await results(tasks) == [number * 10 for number in range(50)]
    assert ledger.batches == [list(range(50))]


async def test_callers_go_on_before_what_waits_for_their_batch(store: Store, ledger: Ledger) -> None:
    answered, order = asyncio.Event(), list[object]()
    commit: Commit = group_commit.GroupCommit(
        store, ledger, max_items=9, max_waiting=9, wait_seconds=60, answered=answered.set
    )

    async def wait() -> None:
        await answered.wait()
        order.append("woken")

    async def call(number: int) -> None:
        await commit.submit(number)
        order.append(number)
        # uvloop writes to a socket at the end of a turn.
        asyncio.get_running_loop().call_soon(order.append, f"written {number}")

    waiting = asyncio.create_task(wait())
    await asyncio.gather(call(1), call(2), waiting)
    assert order == [1, 2, "written 1", "written 2", "woken"]
    await commit.close()


async def test_what_comes_during_a_commit_goes_down_together_and_in_order(
    gate: Gate, ledger: Ledger, store: Store
) -> None:
    commit = commit_on(gate, ledger)
    first = await hold_first(commit, gate)
    tasks = await submit_all(commit, range(1, 70))
    gate.opened.set()
    assert await results([first, *tasks]) == [number * 10 for number in range(70)]
    assert ledger.batches == [[0], list(range(1, 70))]
    assert await samples.count(store, "ledger") == 70


async def test_a_result_is_returned_after_its_commit_and_not_before(store: Store, ledger: Ledger) -> None:
    commit = commit_on(store, ledger)

    async def submit_and_look(number: int) -> bool:
        await commit.submit(number)
        samples.teach(store, one=f"SELECT 1 FROM ledger WHERE id = 'led_{number}'")  # noqa: S608
        return await samples.scan(store, "test.one") != []

    for number in range(20):
        assert await submit_and_look(number)


@pytest.mark.parametrize(
    "limits, calls, batches",
    [
        ({"items": 4}, [{}] * 9, [[1, 2, 3, 4], [5, 6, 7, 8], [9]]),
        # A call that is much work counts as many items; one that is more than a batch has one of its own.
        ({"items": 4}, [{"count": count} for count in (1, 2, 9, 4, 1)], [[1, 2], [3], [4], [5]]),
        ({"size": 100}, [{"size": size} for size in (40, 60, 1, 300, 99, 2)], [[1, 2], [3], [4], [5], [6]]),
    ],
    ids=["items", "work", "bytes"],
)
async def test_a_batch_has_so_much_at_the_most(
    gate: Gate, ledger: Ledger, limits: dict[str, Any], calls: list[dict[str, Any]], batches: list[list[int]]
) -> None:
    commit = commit_on(gate, ledger, **limits)
    first = await hold_first(commit, gate)
    tasks = [asyncio.create_task(commit.submit(number, **call)) for number, call in enumerate(calls, start=1)]
    await asyncio.sleep(0)
    gate.opened.set()
    assert await results([first, *tasks]) == [number * 10 for number in range(len(calls) + 1)]
    assert ledger.batches == [[0], *batches]


async def test_a_refusal_is_a_value_and_does_not_disturb_its_neighbours(store: Store, ledger: Ledger) -> None:
    commit = commit_on(store, ledger)
    outcomes = await results(await submit_all(commit, [1, -1, 2, -2, 3]))
    assert [type(outcome) for outcome in outcomes] == [int, errors.NotFound, int, errors.NotFound, int]
    assert len(ledger.batches) == 1
    assert await samples.count(store, "ledger") == 3


@pytest.mark.parametrize(
    "number, expected",
    [(POISON, ConstraintViolated), (HOPELESS, errors.InvalidRequest), (MISCOUNTED, RuntimeError)],
)
async def test_a_poisonous_item_hurts_only_itself(
    store: Store, ledger: Ledger, number: int, expected: type[Exception]
) -> None:
    commit = commit_on(store, ledger)
    outcomes = await results(await submit_all(commit, [1, 2, number, 3, -1]))
    assert [type(outcome) for outcome in outcomes] == [int, int, expected, int, errors.NotFound]
    assert ledger.batches == [[1, 2, number, 3, -1], [1], [2], [number], [3], [-1]]
    assert await samples.count(store, "ledger") == 3
    assert await commit.submit(4) == 40


@pytest.mark.parametrize("trouble", [errors.ServiceUnavailable, errors.TemporaryFailure])
async def test_a_store_that_fails_raises_for_everyone_and_is_tried_again_by_the_next(
    gate: Gate, ledger: Ledger, trouble: type[errors.PostroadError]
) -> None:
    gate.trouble = trouble("the disk is away", retry_after=7)
    gate.opened.set()
    commit = commit_on(gate, ledger)
    outcomes = await results(await submit_all(commit, range(30)))
    assert {type(outcome) for outcome in outcomes} == {trouble}
    assert {getattr(outcome, "retry_after", None) for outcome in outcomes} == {7}
    assert len({id(outcome) for outcome in outcomes}) == 30  # each raises its own
    assert gate.transactions == 1  # and nobody hammers on a store that is away
    gate.trouble = None
    assert await commit.submit(1) == 10


async def test_a_store_that_failed_is_tried_with_a_small_transaction_until_it_works(gate: Gate, ledger: Ledger) -> None:
    gate.opened.set()
    commit = commit_on(gate, ledger)
    await commit.recover(credentials.bump_access_version)
    assert gate.transactions == 0  # as long as nothing failed, there is nothing to try
    gate.trouble = errors.ServiceUnavailable("away")
    with pytest.raises(errors.ServiceUnavailable):
        await commit.submit(1)
    with pytest.raises(errors.ServiceUnavailable):
        await commit.recover(credentials.bump_access_version)
    gate.trouble = None
    await commit.recover(credentials.bump_access_version)
    await commit.recover(credentials.bump_access_version)
    assert gate.transactions == 3
    assert await commit.submit(1) == 10


async def test_a_store_that_fails_while_items_are_tried_one_by_one_is_not_asked_for_each(
    gate: Gate, ledger: Ledger, store: Store
) -> None:
    class Failing(Ledger):
        async def __call__(self, tx: Transaction, numbers: Sequence[int]) -> list[int | errors.PostroadError]:
            done = await super().__call__(tx, numbers)
            if numbers == [2]:
                gate.trouble = errors.ServiceUnavailable("gone")
            return done

    gate.opened.set()
    commit = commit_on(gate, Failing())
    outcomes = await results(await submit_all(commit, [1, POISON, 2, 3, 4, 5, 6, 7]))
    kinds = [type(outcome).__name__ for outcome in outcomes]
    assert kinds == ["int", "ConstraintViolated", "int", *["ServiceUnavailable"] * 5]
    assert gate.transactions == 5
    assert await samples.count(store, "ledger") == 2


async def test_no_call_is_lost_whatever_the_timing(store: Store, ledger: Ledger) -> None:
    """Calls come in bursts and one by one, and some go away; every one ends as it must."""
    chance = random.Random(5)
    commit = commit_on(store, ledger, items=7)
    reported: dict[int, str] = {}

    async def call(number: int) -> None:
        for _ in range(chance.randrange(60)):
            await asyncio.sleep(0)
        task = asyncio.ensure_future(commit.submit(number))
        if number % 13 == 0:
            for _ in range(chance.randrange(6)):
                await asyncio.sleep(0)
            task.cancel()
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
        reported[number] = "stored" if outcome == number * 10 else type(outcome).__name__

    await asyncio.wait_for(asyncio.gather(*[call(number) for number in range(1, 600)]), 100)
    await commit.close()
    stored = {int(row[0].removeprefix("led_")) for row in await all_entries(store)}
    assert {number for number, end in reported.items() if end == "stored"} <= stored
    assert {number for number in range(1, 600) if number % 13} <= stored
    assert set(reported.values()) <= {"stored", "CancelledError"}
    assert len(ledger.batches) < 400


async def all_entries(store: Store) -> Sequence[Sequence[str]]:
    samples.teach(store, ids="SELECT id FROM ledger")
    return await samples.scan(store, "test.ids")


async def test_two_operations_take_turns_on_one_store(store: Store) -> None:
    one, other = Ledger(), Ledger()
    commits = [commit_on(store, one, items=3), commit_on(store, other, items=3)]
    tasks = [asyncio.create_task(commits[number % 2].submit(number)) for number in range(40)]
    assert await results(tasks) == [number * 10 for number in range(40)]
    for commit in commits:
        await commit.close()
    assert await samples.count(store, "ledger") == 40
