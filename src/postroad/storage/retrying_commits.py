"""Retries a group commit until the item is recorded, for results that nobody can submit again.

While the store is unavailable an item is kept and submitted again, with growing delays. Any other outcome is passed to
the owner, once. The owner bounds how many items may wait. `close` waits for a limited time and then drops the rest.
"""

import asyncio
import functools
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import msgspec

from postroad import errors
from postroad.storage import group_commit, store

Item = TypeVar("Item")
Result = TypeVar("Result")

FIRST_WAIT_SECONDS: Final = 0.1
MAX_WAIT_SECONDS: Final = 5.0
# An outage fails hundreds of items again and again: the owner is notified once per interval, with their number.
REPORT_INTERVAL_SECONDS: Final = 1.0


class _PendingItem(msgspec.Struct, Generic[Item], eq=False):
    """An item that is not recorded yet; `party` and `count` as in a call, `wait` is the delay before its next retry."""

    item: Item
    party: str
    count: int
    wait: float


class RetryingCommits(Generic[Item, Result]):
    """Submits items to a group commit until they are recorded.

    `settled` gets an item and its result, or the exception that prevented it, while the item still counts as waiting.
    `refused` gets the number of waiting items and the error of the store.
    """

    def __init__(
        self,
        commits: group_commit.GroupCommit[Item, Result],
        *,
        settled: Callable[[Item, Result | Exception], None],
        refused: Callable[[int, errors.PostroadError], None],
    ) -> None:
        self._commits = commits
        self._settled = settled
        self._refused = refused
        self._waiting = 0
        # For each item that was refused at least once: its next retry, or the last one.
        self._retries: dict[_PendingItem[Item], asyncio.TimerHandle] = {}
        self._report_at = float("-inf")
        self._has_given_up = False
        self._all_settled = asyncio.Event()
        self._all_settled.set()

    @property
    def waiting(self) -> int:
        """How many items are not settled yet."""
        return self._waiting

    @property
    def is_retrying(self) -> bool:
        """Whether an item that the store refused is waiting."""
        return bool(self._retries)

    def submit(self, item: Item, *, party: str = "", count: int = 1) -> None:
        """Record an item that is as much work as `count` ordinary ones; it is submitted when this returns."""
        self._waiting += 1
        self._all_settled.clear()
        self._attempt(_PendingItem(item, party, count, FIRST_WAIT_SECONDS))

    async def close(self, *, seconds: float) -> int:
        """Wait until everything is settled, at most this long, then stop; returns how many items are left."""
        try:
            async with asyncio.timeout(seconds):
                await self._all_settled.wait()
        except TimeoutError:
            self._has_given_up = True
            self._all_settled.set()  # ends the wait of others
            for timer in self._retries.values():
                timer.cancel()
        return self._waiting

    def _attempt(self, pending: _PendingItem[Item]) -> None:
        try:
            recorded = self._commits.start(pending.item, party=pending.party, count=pending.count)
        except store.UNAVAILABLE as trouble:
            self._retry_later(pending, trouble)
        else:
            recorded.add_done_callback(functools.partial(self._on_done, pending))

    def _on_done(self, pending: _PendingItem[Item], recorded: asyncio.Future[Result]) -> None:
        outcome: Result | Exception
        try:
            outcome = recorded.result()
        except store.UNAVAILABLE as trouble:
            self._retry_later(pending, trouble)
            return
        except Exception as bug:  # noqa: BLE001 - the owner gets it
            outcome = bug
        try:
            self._settled(pending.item, outcome)
        finally:
            self._forget(pending)

    def _retry_later(self, pending: _PendingItem[Item], trouble: errors.PostroadError) -> None:
        if self._has_given_up:
            return
        loop = asyncio.get_running_loop()
        self._retries[pending] = loop.call_later(pending.wait, self._attempt, pending)
        pending.wait = min(2 * pending.wait, MAX_WAIT_SECONDS)
        if loop.time() >= self._report_at:
            self._report_at = loop.time() + REPORT_INTERVAL_SECONDS
            self._refused(self._waiting, trouble)

    def _forget(self, pending: _PendingItem[Item]) -> None:
        self._retries.pop(pending, None)
        self._waiting -= 1
        if not self._waiting:
            self._all_settled.set()
