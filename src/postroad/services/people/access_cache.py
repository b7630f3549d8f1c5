"""A per-process cache of callers and domains, valid for at most half a second after any change.

The database counts changes to everything that decides access. The counter is read at most twice a second, by one
request for all; when it has changed, the whole cache is dropped. A revocation therefore takes effect within a second in
every process, and the hot path does not query the database. A lookup that began before the drop writes into the
dropped dictionary, where nobody reads it.
"""

import asyncio
import contextlib
import functools
import hashlib
import os
from collections.abc import Hashable
from typing import Any, Final

from postroad import errors
from postroad.concurrency import caches
from postroad.services.people import password_checks, passwords
from postroad.storage.engine import store
from postroad.storage.people import credentials, sessions

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
        self.login_failures = password_checks.LoginFailures(database)
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
