"""Retried commits: an item is submitted until it is recorded, settled once, and close waits for a bounded time."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import pytest

from postroad import errors
from postroad.storage.engine import group_commit
from postroad.storage.engine.store import ConstraintViolated, Store
from tests.storage import samples
from tests.storage.group_commits import POISON, Commit, Gate, Ledger, commit_on, hold_first

TIMEOUT_SECONDS = 600.0
AWAY = errors.ServiceUnavailable("the database cannot be reached", retry_after=5)


@dataclass
class Owner:
    """An owner of retried commits, and what it was notified of."""

    commit: Commit
    settled: list[tuple[int, int | Exception]] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.retrying: group_commit.RetryingCommits[int, int] = group_commit.RetryingCommits(
            self.commit,
            settled=lambda number, outcome: self.settled.append((number, outcome)),
            refused=lambda waiting, trouble: self.refused.append((waiting, trouble.code)),
        )

    def offer(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.retrying.submit(number)

    async def close(self) -> int:
        """Close with a generous limit."""
        return await self.retrying.close(seconds=TIMEOUT_SECONDS)


@dataclass
class Timers:
    """The waits between offers; they take no time unless they are held."""

    waits: list[float] = field(default_factory=list)
    handles: list[asyncio.TimerHandle] = field(default_factory=list)
    set_one: asyncio.Event = field(default_factory=asyncio.Event)
    are_held: bool = False

    async def counted(self, count: int) -> None:
        """Until there were so many."""
        async with asyncio.timeout(TIMEOUT_SECONDS):
            while len(self.waits) < count:
                self.set_one.clear()
                await self.set_one.wait()


@pytest.fixture
async def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    loop, seen = asyncio.get_running_loop(), Timers()
    real = loop.call_later

    def call_later(delay: float, callback: Callable[..., object], *arguments: object) -> asyncio.TimerHandle:
        if getattr(callback, "__func__", None) is not group_commit.RetryingCommits._attempt:
            return real(delay, callback, *arguments)  # a database driver's
        seen.waits.append(delay)
        seen.handles.append(real(TIMEOUT_SECONDS if seen.are_held else 0, callback, *arguments))
        seen.set_one.set()
        return seen.handles[-1]

    monkeypatch.setattr(loop, "call_later", call_later)
    return seen


@pytest.fixture
def gate(store: Store) -> Gate:
    opened = Gate(store)
    opened.opened.set()
    return opened


async def test_items_of_one_moment_are_one_transaction_and_each_is_reported_once(store: Store, ledger: Ledger) -> None:
    owner = Owner(commit_on(store, ledger))
    owner.offer([1, 2, 3])
    assert (owner.retrying.waiting, owner.retrying.is_retrying) == (3, False)
    assert await owner.close() == 0
    assert owner.retrying.waiting == 0
    assert owner.settled == [(1, 10), (2, 20), (3, 30)]
    assert owner.refused == []
    assert ledger.batches == [[1, 2, 3]]


async def test_large_items_fill_a_transaction_sooner_also_when_they_are_retried(
    gate: Gate, ledger: Ledger, timers: Timers
) -> None:
    gate.trouble = AWAY
    owner = Owner(commit_on(gate, ledger, items=100))
    for number in range(4):
        owner.retrying.submit(number, count=50)
    await timers.counted(4)
    gate.trouble = None
    assert await owner.close() == 0
    assert ledger.batches == [[0, 1], [2, 3]]


@pytest.mark.parametrize("trouble", [errors.ServiceUnavailable, errors.TemporaryFailure])
async def test_a_store_in_trouble_is_offered_the_same_again_until_it_takes_it(
    gate: Gate, ledger: Ledger, timers: Timers, trouble: type[errors.PostroadError]
) -> None:
    gate.trouble = trouble("not now")
    owner = Owner(commit_on(gate, ledger))
    owner.offer([1, 2])
    await timers.counted(6)
    assert (owner.retrying.waiting, owner.retrying.is_retrying, owner.settled) == (2, True, [])
    gate.trouble = None
    assert await owner.close() == 0
    assert not owner.retrying.is_retrying
    assert sorted(owner.settled, key=lambda reported: reported[0]) == [(1, 10), (2, 20)]
    assert await samples.count(gate._behind, "ledger") == 2


async def test_the_waits_grow_and_have_a_bound(gate: Gate, ledger: Ledger, timers: Timers) -> None:
    gate.trouble = AWAY
    owner = Owner(commit_on(gate, ledger))
    owner.offer([1])
    await timers.counted(8)
    gate.trouble = None
    await owner.close()
    assert timers.waits[:8] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])


async def test_a_line_that_is_full_is_trouble_as_well(gate: Gate, ledger: Ledger, timers: Timers) -> None:
    gate.opened.clear()
    commit = commit_on(gate, ledger, waiting=1)
    first = await hold_first(commit, gate)
    owner = Owner(commit)
    owner.offer([1, 2])
    assert owner.retrying.is_retrying
    assert owner.refused == [(2, "temporary_failure")]
    gate.opened.set()
    assert await owner.close() == 0
    assert owner.settled == [(1, 10), (2, 20)]
    assert await first == 0
    assert timers.waits[0] == group_commit.FIRST_WAIT_SECONDS


async def test_a_bug_is_reported_once_and_hurts_no_neighbour(store: Store, ledger: Ledger, timers: Timers) -> None:
    owner = Owner(commit_on(store, ledger))
    owner.offer([1, POISON, -1, 2])
    assert await owner.close() == 0
    kinds = {number: type(outcome) for number, outcome in owner.settled}
    assert kinds == {1: int, POISON: ConstraintViolated, -1: errors.NotFound, 2: int}
    assert len(owner.settled) == 4
    assert timers.waits == []


async def test_an_outage_is_logged_once_a_second_with_the_number_of_those_who_wait(
    gate: Gate, ledger: Ledger, timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group_commit, "REPORT_INTERVAL_SECONDS", TIMEOUT_SECONDS)  # a busy machine may be slow
    gate.trouble = AWAY
    owner = Owner(commit_on(gate, ledger))
    owner.offer(range(30))
    await timers.counted(90)
    assert owner.refused == [(30, "service_unavailable")]
    owner.retrying._report_at -= TIMEOUT_SECONDS  # which have passed
    await timers.counted(150)
    assert owner.refused == [(30, "service_unavailable")] * 2
    gate.trouble = None
    await owner.close()


async def test_closing_stops_waiting_after_a_while_and_nothing_is_offered_any_more(
    gate: Gate, ledger: Ledger, timers: Timers
) -> None:
    timers.are_held = True
    gate.trouble = AWAY
    owner = Owner(commit_on(gate, ledger))
    owner.offer([1, 2, 3])
    await timers.counted(3)
    assert await owner.retrying.close(seconds=0.01) == 3
    assert len(timers.handles) == 3
    assert all(handle.cancelled() for handle in timers.handles)
    await owner.commit.close()
    assert owner.settled == []
    assert await owner.close() == 3  # which waits for nothing any more


async def test_what_is_refused_after_a_timeout_is_not_offered_again(gate: Gate, ledger: Ledger, timers: Timers) -> None:
    gate.opened.clear()
    gate.trouble = AWAY
    owner = Owner(commit_on(gate, ledger))
    owner.offer([1, 2])
    await gate.reached.wait()
    assert await owner.retrying.close(seconds=0.01) == 2
    gate.opened.set()
    await owner.commit.close()
    assert (gate.transactions, timers.waits, owner.settled, owner.refused) == (1, [], [], [])


async def test_what_is_recorded_after_a_timeout_is_reported_all_the_same(gate: Gate, ledger: Ledger) -> None:
    gate.opened.clear()
    owner = Owner(commit_on(gate, ledger))
    owner.offer([1])
    await gate.reached.wait()
    assert await owner.retrying.close(seconds=0.01) == 1
    gate.opened.set()
    await owner.commit.close()
    assert owner.settled == [(1, 10)]
    assert await owner.close() == 0


async def test_an_item_counts_until_its_owner_was_notified_even_when_the_owner_has_a_bug(
    store: Store, ledger: Ledger
) -> None:
    counts, bugs = list[int](), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, reported: bugs.append(reported["exception"]))

    def fail(_number: int, _outcome: int | Exception) -> None:
        counts.append(made.waiting)
        raise RuntimeError("a bug")

    made = group_commit.RetryingCommits(commit_on(store, ledger), settled=fail, refused=lambda *_: None)
    made.submit(1)
    assert await made.close(seconds=TIMEOUT_SECONDS) == 0
    assert counts == [1]
    assert [type(bug) for bug in bugs] == [RuntimeError]
