"""Counts failed logins, by the rules of `model/login_throttle.py`, for all processes and hosts together.

An attempt is counted before it is checked, so that parallel attempts are throttled like sequential ones, and is
withdrawn when it succeeds. The counters are in the database, and a restart forgets none. Those of this process are a
first filter, so that whoever is throttled costs the database nothing; each answer of the database corrects them. While
the database cannot be written, they count alone: logging in to read still works then.
"""

import enum
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad.concurrency import lru
from postroad.model import login_throttle, times
from postroad.storage import group_commit, login_failures, store

# About 5 MB. The least recently used counter is evicted; the database still has it.
MAX_COUNTERS: Final = 20_000
# Concurrent attempts are counted in one transaction. More than ever wait for a password check.
MAX_BATCH: Final = 256
MAX_WAITING: Final = 1_024
WAIT_SECONDS: Final = 5.0
COUNTER_BYTES: Final = 16

State = Mapping[login_throttle.Counter, int]


class _Change(enum.Enum):
    ATTEMPT = enum.auto()
    WITHDRAW = enum.auto()
    FORGIVE = enum.auto()


class _Item(msgspec.Struct, frozen=True):
    """A change of counters at a time."""

    change: _Change
    counters: login_throttle.Counters
    now: int


class _Counted(msgspec.Struct, frozen=True):
    """How long an attempt has to wait, in microseconds, and the counters then."""

    wait: int
    clear_at: State


class LoginFailures:
    """The counters."""

    def __init__(self, database: store.Store, *, max_counters: int = MAX_COUNTERS) -> None:
        self._clear_at: lru.LruCache[login_throttle.Counter, int] = lru.LruCache(max_counters)
        self._commits: group_commit.GroupCommit[_Item, _Counted] = group_commit.GroupCommit(
            database, _apply, max_items=MAX_BATCH, max_waiting=MAX_WAITING, wait_seconds=WAIT_SECONDS
        )

    async def attempt(self, counters: login_throttle.Counters, *, now: int) -> int:
        """Count an attempt as failed. When it is not allowed, it is not counted: whole seconds until it is."""
        return await self._change(_Item(_Change.ATTEMPT, counters, now))

    async def withdraw(self, counters: login_throttle.Counters, *, now: int) -> None:
        """Withdraw an attempt that was counted but never checked."""
        await self._change(_Item(_Change.WITHDRAW, counters, now))

    async def forgive(self, counters: login_throttle.Counters, *, now: int) -> None:
        """After a success: clear the name's failures here. The networks keep those of other names."""
        await self._change(_Item(_Change.FORGIVE, counters, now))

    async def close(self) -> None:
        """Finish what is being counted."""
        await self._commits.close()

    async def _change(self, item: _Item) -> int:
        counted = self._in_memory(item)
        if not counted.wait:
            try:
                counted = await self._commits.submit(item)
            except store.UNAVAILABLE:
                # Again: other attempts were counted while this one waited.
                counted = self._in_memory(item)
            for counter, clear_at in counted.clear_at.items():
                self._clear_at.put(counter, clear_at)
        return math.ceil(counted.wait / times.SECOND)

    def _in_memory(self, item: _Item) -> _Counted:
        return _changed(item, {counter: self._clear_at.get(counter) or 0 for counter in item.counters})


async def _apply(tx: store.Transaction, items: Sequence[_Item]) -> list[_Counted]:
    """Apply changes in their order, each to the counters that those before it left."""
    digests = {counter: _digest(counter) for item in items for counter in item.counters}
    stored = await login_failures.lock(tx, digests.values())
    clear_at = {counter: stored.get(digest, 0) for counter, digest in digests.items()}
    results = []
    for item in items:
        results.append(_changed(item, clear_at))
        clear_at.update(results[-1].clear_at)
    await login_failures.put(tx, {digests[counter]: end for counter, end in clear_at.items()})
    # What an attacker adds is gone as soon as it is forgotten: the table stays small between two cleanups.
    await login_failures.sweep(tx, now=max(item.now for item in items))
    return results


def _changed(item: _Item, clear_at: State) -> _Counted:
    match item.change:
        case _Change.ATTEMPT:
            wait = login_throttle.wait(item.counters, clear_at, now=item.now)
            if wait:
                return _Counted(wait, {counter: clear_at.get(counter, 0) for counter in item.counters})
            return _Counted(0, login_throttle.count(item.counters, clear_at, now=item.now))
        case _Change.WITHDRAW:
            return _Counted(0, login_throttle.withdraw(item.counters, clear_at))
        case _Change.FORGIVE:
            return _Counted(0, login_throttle.forgive(item.counters, clear_at))


def _digest(counter: login_throttle.Counter) -> bytes:
    """A short name for a counter: a name of any length, or a password typed into the wrong field, is not stored."""
    text = "\0".join("-" if part is None else f"={part}" for part in counter)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=COUNTER_BYTES).digest()
