"""A per-process cache of callers and domains, valid for at most half a second after any change.

The database counts changes to everything that decides access. The counter is read at most twice a second, by one
request for all; when it has changed, the whole cache is dropped. A revocation therefore takes effect within a second in
every process, and the hot path does not query the database. A lookup that began before the drop writes into the
dropped dictionary, where nobody reads it.
"""

import asyncio
import contextlib
import enum
import functools
import hashlib
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad import errors
from postroad.concurrency import caches
from postroad.model.people import login_rules
from postroad.model.units import times
from postroad.services.people import passwords
from postroad.storage.engine import group_commit, store
from postroad.storage.people import credentials, rates, sessions

# About 5 MB. The least recently used counter is evicted; the database still has it.
MAX_COUNTERS: Final = 20_000
# Concurrent attempts are counted in one transaction. More than ever wait for a password check.
MAX_FAILURE_BATCH: Final = 256
MAX_FAILURES_WAITING: Final = 1_024
FAILURE_WAIT_SECONDS: Final = 5.0
COUNTER_BYTES: Final = 16
FailureState = Mapping[login_rules.Counter, int]


class _FailureChange(enum.Enum):
    ATTEMPT = enum.auto()
    WITHDRAW = enum.auto()
    FORGIVE = enum.auto()


class _FailureItem(msgspec.Struct, frozen=True):
    change: _FailureChange
    counters: login_rules.Counters
    now: int


class _FailureCounted(msgspec.Struct, frozen=True):
    """How long an attempt has to wait, in microseconds, and the counters then."""

    wait: int
    clear_at: FailureState


class LoginFailures:
    def __init__(self, database: store.Store, *, max_counters: int = MAX_COUNTERS) -> None:
        self._clear_at: caches.LruCache[login_rules.Counter, int] = caches.LruCache(max_counters)
        self._commits: group_commit.GroupCommit[_FailureItem, _FailureCounted] = group_commit.GroupCommit(
            database,
            _apply_failures,
            max_items=MAX_FAILURE_BATCH,
            max_waiting=MAX_FAILURES_WAITING,
            wait_seconds=FAILURE_WAIT_SECONDS,
        )

    async def attempt(self, counters: login_rules.Counters, *, now: int) -> int:
        """Count an attempt as failed. When it is not allowed, it is not counted: whole seconds until it is."""
        return await self._change(_FailureItem(_FailureChange.ATTEMPT, counters, now))

    async def check(self, counters: login_rules.Counters, *, now: int, what: str = "failed attempts") -> None:
        """Count an attempt. Raises RateLimited when it is not allowed."""
        seconds = await self.attempt(counters, now=now)
        if seconds:
            raise errors.RateLimited(f"too many {what}; try again in {seconds} seconds", retry_after=seconds)

    async def withdraw(self, counters: login_rules.Counters, *, now: int) -> None:
        """Withdraw an attempt that was counted but never checked."""
        await self._change(_FailureItem(_FailureChange.WITHDRAW, counters, now))

    async def forgive(self, counters: login_rules.Counters, *, now: int) -> None:
        """After a success: clear the name's failures here. The networks keep those of other names."""
        await self._change(_FailureItem(_FailureChange.FORGIVE, counters, now))

    async def close(self) -> None:
        await self._commits.close()

    async def _change(self, item: _FailureItem) -> int:
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

    def _in_memory(self, item: _FailureItem) -> _FailureCounted:
        return _changed_failures(item, {counter: self._clear_at.get(counter) or 0 for counter in item.counters})


async def _apply_failures(tx: store.Transaction, items: Sequence[_FailureItem]) -> list[_FailureCounted]:
    """Apply changes in their order, each to the counters that those before it left."""
    digests = {counter: _counter_digest(counter) for item in items for counter in item.counters}
    stored = await rates.lock_failures(tx, digests.values())
    clear_at = {counter: stored.get(digest, 0) for counter, digest in digests.items()}
    results = []
    for item in items:
        results.append(_changed_failures(item, clear_at))
        clear_at.update(results[-1].clear_at)
    await rates.put_failures(tx, {digests[counter]: end for counter, end in clear_at.items()})
    # What an attacker adds is gone as soon as it is forgotten: the table stays small between two cleanups.
    await rates.sweep_failures(tx, now=max(item.now for item in items))
    return results


def _changed_failures(item: _FailureItem, clear_at: FailureState) -> _FailureCounted:
    match item.change:
        case _FailureChange.ATTEMPT:
            wait = login_rules.wait(item.counters, clear_at, now=item.now)
            if wait:
                return _FailureCounted(wait, {counter: clear_at.get(counter, 0) for counter in item.counters})
            return _FailureCounted(0, login_rules.count(item.counters, clear_at, now=item.now))
        case _FailureChange.WITHDRAW:
            return _FailureCounted(0, login_rules.withdraw(item.counters, clear_at))
        case _FailureChange.FORGIVE:
            return _FailureCounted(0, login_rules.forgive(item.counters, clear_at))


def _counter_digest(counter: login_rules.Counter) -> bytes:
    """A short name for a counter: a name of any length, or a password typed into the wrong field, is not stored."""
    text = "\0".join("-" if part is None else f"={part}" for part in counter)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=COUNTER_BYTES).digest()


# Records when secrets and sessions were last used, at most once a minute each and never in a request's path.
#
# A use is noted in memory; a background task writes the collected ones. The data is informational: a note that cannot
# be written is dropped, and the last second before a crash is lost.

MIN_INTERVAL_MICROSECONDS: Final = 60_000_000
# Collects the uses of many callers into one transaction, out of the way of the send that caused them.
FLUSH_DELAY_SECONDS: Final = 1.0
# One short transaction: this many updates take some milliseconds.
MAX_BATCH_ROWS: Final = 256
MAX_NOTED: Final = 50_000

USED_CREDENTIAL: Final = "credential"
USED_API_KEY: Final = "api_key"
USED_SESSION: Final = "session"
_TOUCH: Final = {USED_CREDENTIAL: credentials.touch, USED_API_KEY: credentials.touch_key, USED_SESSION: sessions.touch}
# The kind of secret, and its id.
UsedSecret = tuple[str, str]


class LastUsedRecorder:
    def __init__(self, database: store.Store) -> None:
        self._database = database
        self._noted_at: dict[UsedSecret, int] = {}
        self._waiting: dict[UsedSecret, int] = {}
        self._writer: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def note(self, used: UsedSecret, *, now: int) -> None:
        """Note a use; cheap enough for every request."""
        noted_at = self._noted_at.get(used)
        if noted_at is not None and 0 <= now - noted_at < MIN_INTERVAL_MICROSECONDS:
            return
        if len(self._noted_at) >= MAX_NOTED:
            self._noted_at.clear()
        self._noted_at[used] = now
        if len(self._waiting) < MAX_NOTED:
            self._waiting[used] = now
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write_later())
            self._writer.add_done_callback(self._end_writer)

    async def flush(self) -> None:
        """Write the collected uses. If the database refuses them, they are dropped."""
        while self._waiting:
            batch = [self._waiting.popitem() for _ in range(min(MAX_BATCH_ROWS, len(self._waiting)))]
            with contextlib.suppress(errors.PostroadError):
                async with self._database.transaction() as tx:
                    # In one order everywhere, so that two hosts that write the same rows wait instead of deadlocking.
                    for (kind, used_id), now in sorted(batch):
                        await _TOUCH[kind](tx, used_id, now=now)

    async def close(self) -> None:
        self._closing.set()
        if self._writer is not None:
            await asyncio.wait([self._writer])

    async def _write_later(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), FLUSH_DELAY_SECONDS)
        await self.flush()

    def _end_writer(self, _writer: asyncio.Task[None]) -> None:
        self._writer = None


FRESH_MICROSECONDS: Final = 500_000
# About 30 MB of callers. When full, everything is dropped: each entry returns with one lookup.
MAX_ENTRIES: Final = 50_000
KEY_BYTES: Final = 32
# A version check in progress is joined, except after a change, which starts another.
MAX_VERSION_CHECKS: Final = 10_000


class AccessCache:
    """The cache of this process; it also holds recent login failures and uses of credentials."""

    def __init__(self, database: store.Store) -> None:
        self.login_failures = LoginFailures(database)
        # Password checks with their counts, and what is written after them.
        self.password_checks = caches.SingleFlight(passwords.MAX_WAITING, what="password checks")
        self.last_used = LastUsedRecorder(database)
        self._database = database
        self._key = os.urandom(KEY_BYTES)
        self._entries: dict[Hashable, Any] = {}
        self._version: int | None = None
        self._checked_at: int | None = None
        # Counts the changes that this process committed.
        self._generation = 0
        self._version_checks = caches.SingleFlight(MAX_VERSION_CHECKS, what="access checks")

    def get_fresh(self, cache_key: Hashable, *, now: int) -> Any | None:  # noqa: ANN401 - facts are of many kinds
        """A value that can be trusted now without a query; None when unknown or when the version must be read first."""
        return self._entries.get(cache_key) if self._is_fresh(now) else None

    def _is_fresh(self, now: int) -> bool:
        # A clock that was set back must not make old entries fresh.
        return self._checked_at is not None and 0 <= now - self._checked_at < FRESH_MICROSECONDS

    async def refresh(self, now: int) -> dict[Hashable, Any]:
        """The entries that can be trusted now. Put what you look up afterwards into the same dictionary."""
        if not self._is_fresh(now):
            check = functools.partial(self._check_version, now, self._generation)
            await self._version_checks.join(self._generation, check)
        if len(self._entries) > MAX_ENTRIES:
            self._entries = {}
        return self._entries

    def invalidate(self) -> None:
        """After a change committed by this process: the next `refresh` reads the version, and joins no earlier read."""
        self._entries = {}
        self._version = self._checked_at = None
        self._generation += 1

    def digest(self, secret: str) -> bytes:
        """A digest that stands for a secret in memory; useless outside this process."""
        return hashlib.blake2b(secret.encode(errors="surrogatepass"), key=self._key, digest_size=KEY_BYTES).digest()

    async def close(self) -> None:
        await self.password_checks.close()
        await self.login_failures.close()
        await self._version_checks.close()
        await self.last_used.close()

    async def _check_version(self, now: int, generation: int) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        async with self._database.looking_up() as tx:
            version = await credentials.access_version(tx)
        if generation != self._generation:  # invalidated since: this version may predate the change
            return
        is_late = (loop.time() - started) * 1_000_000 >= FRESH_MICROSECONDS
        if version != self._version or is_late:
            self._entries = {}
        self._version, self._checked_at = version, now
