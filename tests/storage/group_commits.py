"""What the tests of group commit gather.

`Ledger` is an operation that writes entries and counts its transactions; `Gate` stands between it and a real store, to
hold a transaction for as long as a test needs.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from postroad import errors
from postroad.storage.engine import group_commit
from postroad.storage.engine.store import Store, Transaction


@dataclass
class Ledger:
    """Writes an entry for each number. Some numbers mean trouble."""

    batches: list[list[int]] = field(default_factory=list)

    async def __call__(self, tx: Transaction, numbers: Sequence[int]) -> list[int | errors.PostroadError]:
        self.batches.append(list(numbers))
        accepted = [number for number in numbers if number not in REFUSED]
        if MISCOUNTED in numbers:
            return [0] * (len(numbers) + 1)
        if HOPELESS in numbers:
            raise errors.InvalidRequest("one of these cannot be stored")
        await tx.execute_many("ledger.insert", [entry(number) for number in accepted])
        if STOPPED in numbers:
            raise asyncio.CancelledError
        return [errors.NotFound(f"{number}") if number in REFUSED else number * 10 for number in numbers]


REFUSED = frozenset({-1, -2})
POISON, HOPELESS, MISCOUNTED, STOPPED = -10, -11, -12, -13


def entry(number: int) -> tuple[object, ...]:
    kind = "poison" if number == POISON else "grant"  # which a CHECK refuses
    return (f"led_{number}", "acc_1", kind, 0, 0, None, None, number)


class Gate:
    """A store whose transactions wait at its gate, and fail when told to."""

    dialect = "gate"

    def __init__(self, behind: Store) -> None:
        self._behind = behind
        self.opened = asyncio.Event()
        self.reached = asyncio.Event()
        self.trouble: Exception | None = None
        self.transactions = 0

    @contextlib.asynccontextmanager
    async def transaction(self, _party: str = "") -> AsyncIterator[Transaction]:
        self.transactions += 1
        self.reached.set()
        await self.opened.wait()
        if self.trouble is not None:
            raise self.trouble
        async with self._behind.transaction() as tx:
            yield tx

    leasing = reading = looking_up = scanning = transaction

    async def close(self) -> None:
        pass


Commit = group_commit.GroupCommit[int, int]


def commit_on(
    database: Store,
    operation: Ledger,
    *,
    items: int = 100,
    size: int = 1000,
    waiting: int = 10_000,
    seconds: float = 60,
) -> Commit:
    return group_commit.GroupCommit(
        database, operation, max_items=items, max_bytes=size, max_waiting=waiting, wait_seconds=seconds
    )


async def submit_all(commit: Commit, numbers: Sequence[int], *, size: int = 0) -> list[asyncio.Task[int]]:
    tasks = [asyncio.create_task(commit.submit(number, size=size)) for number in numbers]
    await asyncio.sleep(0)
    return tasks


async def hold_first(commit: Commit, gate: Gate) -> asyncio.Task[int]:
    """A call on its way to disk: whatever is submitted now has to wait for it."""
    first = asyncio.create_task(commit.submit(0))
    await gate.reached.wait()
    return first


async def results(tasks: Sequence[asyncio.Task[int]]) -> list[int | BaseException]:
    return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
