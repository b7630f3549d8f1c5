"""Parties take turns in the commits by work: recipients and bytes, not calls."""

import asyncio
import itertools
from collections.abc import Sequence

from postroad.storage.engine import group_commit
from postroad.storage.engine.store import Store
from tests.storage.group_commits import Gate, Ledger, commit_on, hold_first, results

# A number names its party by its hundreds.
NOISY, QUIET = 100, 200


def submit(
    commit: group_commit.GroupCommit[int, int], numbers: Sequence[int], *, size: int = 0, count: int = 1
) -> list[asyncio.Task[int]]:
    return [
        asyncio.ensure_future(commit.start(number, party=f"{number // 100}", size=size, count=count))
        for number in numbers
    ]


async def test_a_call_goes_with_the_next_commit_whatever_another_party_has_waiting(gate: Gate, ledger: Ledger) -> None:
    commit = commit_on(gate, ledger, items=4)
    await hold_first(commit, gate)
    tasks = submit(commit, range(NOISY, NOISY + 40)) + submit(commit, [QUIET])
    gate.opened.set()
    assert len(await results(tasks)) == 41
    assert ledger.batches[1] == [100, 200, 101, 102]
    # A party that is alone has the rest, in order.
    assert list(itertools.chain(*ledger.batches[2:])) == [*range(103, 140)]


async def test_parties_get_equal_parts_by_recipients_and_not_by_calls(gate: Gate, ledger: Ledger) -> None:
    commit = commit_on(gate, ledger, items=50)
    await hold_first(commit, gate)
    tasks = submit(commit, range(100, 110), count=50) + submit(commit, range(200, 270))
    gate.opened.set()
    await results(tasks)
    # After a commit for fifty recipients of the one, the other has had its fifty, and not one call for each call.
    assert ledger.batches[1] == [100]
    assert ledger.batches[2] == [*range(200, 250)]
    assert ledger.batches[3] == [101]
    assert ledger.batches[4] == [*range(250, 270)]


async def test_bytes_are_work_too(gate: Gate, ledger: Ledger) -> None:
    commit = commit_on(gate, ledger, size=1_000_000)
    await hold_first(commit, gate)
    large = submit(commit, range(100, 104), size=1_000_000)
    small = submit(commit, range(200, 203), size=10_000)
    gate.opened.set()
    await results(large + small)
    assert ledger.batches[1:] == [[100], [200, 201, 202], [101], [102], [103]]


async def test_a_party_that_was_served_during_the_wait_of_another_is_behind_it(gate: Gate, ledger: Ledger) -> None:
    """Whoever sends a large batch as soon as the last one is stored, has had its turn."""
    commit = commit_on(gate, ledger, items=10)
    first = submit(commit, [NOISY], count=50)
    await gate.reached.wait()
    again = submit(commit, [NOISY + 1], count=50)
    quiet = submit(commit, [QUIET])
    gate.opened.set()
    await results(first + again + quiet)
    assert ledger.batches == [[100], [200], [101]]


async def test_an_idle_moment_forgives_all_work(store: Store, ledger: Ledger) -> None:
    commit = commit_on(store, ledger, items=10)
    await results(submit(commit, [NOISY], count=50))
    await results(submit(commit, [NOISY + 1, QUIET]))
    assert ledger.batches == [[100], [101, 200]]


async def test_a_party_whose_callers_have_gone_takes_no_turn(gate: Gate, ledger: Ledger) -> None:
    commit = commit_on(gate, ledger, items=2)
    await hold_first(commit, gate)
    gone = submit(commit, range(100, 105))
    for task in gone:
        task.cancel()
    quiet = submit(commit, range(200, 203))
    gate.opened.set()
    assert await results(quiet) == [2000, 2010, 2020]
    assert ledger.batches[1:] == [[200, 201], [202]]
