"""Failed logins and wrong codes: counted for all processes before the password or the code is checked.

`model/people/login_rules.py` decides how long a name or a network has to wait. While the database is away, a process
decides by what it has counted itself.
"""

import enum
import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from postroad import errors
from postroad.concurrency import caches
from postroad.model.people import login_rules
from postroad.model.units import times
from postroad.storage.engine import group_commit, store
from postroad.storage.people import rates

# About 5 MB. The least recently used counter is evicted; the database still has it.
MAX_COUNTERS: Final = 20_000
# Concurrent attempts are counted in one transaction. More than ever wait for a password check.
MAX_BATCH: Final = 256
MAX_WAITING: Final = 1_024
WAIT_SECONDS: Final = 5.0
COUNTER_BYTES: Final = 16
FailureState = Mapping[login_rules.Counter, int]


class _Change(enum.Enum):
    ATTEMPT = enum.auto()
    WITHDRAW = enum.auto()
    FORGIVE = enum.auto()


class _Item(msgspec.Struct, frozen=True):
    change: _Change
    counters: login_rules.Counters
    now: int


class _Counted(msgspec.Struct, frozen=True):
    """How long an attempt has to wait, in microseconds, and the counters then."""

    wait: int
    clear_at: FailureState


class LoginFailures:
    def __init__(self, database: store.Store, *, max_counters: int = MAX_COUNTERS) -> None:
        self._clear_at: caches.LruCache[login_rules.Counter, int] = caches.LruCache(max_counters)
        self._commits: group_commit.GroupCommit[_Item, _Counted] = group_commit.GroupCommit(
            database,
            _apply,
            max_items=MAX_BATCH,
            max_waiting=MAX_WAITING,
            wait_seconds=WAIT_SECONDS,
        )

    async def attempt(self, counters: login_rules.Counters, *, now: int) -> int:
        """Count an attempt as failed. When it is not allowed, it is not counted: whole seconds until it is."""
        return await self._count(_Item(_Change.ATTEMPT, counters, now))

    async def check(self, counters: login_rules.Counters, *, now: int, what: str = "failed attempts") -> None:
        """Count an attempt. Raises RateLimited when it is not allowed."""
        seconds = await self.attempt(counters, now=now)
        if seconds:
            raise errors.RateLimited(f"too many {what}; try again in {seconds} seconds", retry_after=seconds)

    async def withdraw(self, counters: login_rules.Counters, *, now: int) -> None:
        """Withdraw an attempt that was counted but never checked."""
        await self._count(_Item(_Change.WITHDRAW, counters, now))

    async def forgive(self, counters: login_rules.Counters, *, now: int) -> None:
        """After a success: clear the name's failures here. The networks keep those of other names."""
        await self._count(_Item(_Change.FORGIVE, counters, now))

    async def close(self) -> None:
        await self._commits.close()

    async def _count(self, item: _Item) -> int:
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
    stored = await rates.lock_failures(tx, digests.values())
    clear_at = {counter: stored.get(digest, 0) for counter, digest in digests.items()}
    results = []
    for item in items:
        results.append(_changed(item, clear_at))
        clear_at.update(results[-1].clear_at)
    await rates.put_failures(tx, {digests[counter]: end for counter, end in clear_at.items()})
    # What an attacker adds is gone as soon as it is forgotten: the table stays small between two cleanups.
    await rates.sweep_failures(tx, now=max(item.now for item in items))
    return results


def _changed(item: _Item, clear_at: FailureState) -> _Counted:
    match item.change:
        case _Change.ATTEMPT:
            wait = login_rules.wait(item.counters, clear_at, now=item.now)
            if wait:
                return _Counted(wait, {counter: clear_at.get(counter, 0) for counter in item.counters})
            return _Counted(0, login_rules.count(item.counters, clear_at, now=item.now))
        case _Change.WITHDRAW:
            return _Counted(0, login_rules.withdraw(item.counters, clear_at))
        case _Change.FORGIVE:
            return _Counted(0, login_rules.forgive(item.counters, clear_at))


def _digest(counter: login_rules.Counter) -> bytes:
    """A short name for a counter: a name of any length, or a password typed into the wrong field, is not stored."""
    text = "\0".join("-" if part is None else f"={part}" for part in counter)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=COUNTER_BYTES).digest()
