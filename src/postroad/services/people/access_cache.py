"""A per-process cache of callers and domains, valid for at most half a second after any change.

The database counts changes to everything that decides access. The counter is read at most twice a second, by one
request for all; when it has changed, the whole cache is dropped. A revocation therefore takes effect within a second in
every process, and the hot path does not query the database. A lookup that began before the drop writes into the
dropped dictionary, where nobody reads it.
"""

import asyncio
import functools
import hashlib
import os
from collections.abc import Hashable
from typing import Any, Final

from postroad.concurrency import caches
from postroad.services.people import last_used, login_failures, passwords
from postroad.storage.engine import store
from postroad.storage.people import credentials

FRESH_MICROSECONDS: Final = 500_000
# About 30 MB of callers. When full, everything is dropped: each entry returns with one lookup.
MAX_ENTRIES: Final = 50_000
KEY_BYTES: Final = 32
# A version check in progress is joined, except after a change, which starts another.
MAX_VERSION_CHECKS: Final = 10_000


class AccessCache:
    """The cache of this process; it also holds recent login failures and uses of credentials."""

    def __init__(self, database: store.Store) -> None:
        self.login_failures = login_failures.LoginFailures(database)
        # Password checks with their counts, and what is written after them.
        self.password_checks = caches.SingleFlight(passwords.MAX_WAITING, what="password checks")
        self.last_used = last_used.LastUsedRecorder(database)
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
        entries = self.fresh_entries(now)
        return None if entries is None else entries.get(cache_key)

    def fresh_entries(self, now: int) -> dict[Hashable, Any] | None:
        """The entries, if they can be trusted now without a query; otherwise `refresh` returns them."""
        at = self._checked_at
        # A clock that was set back must not make old entries fresh.
        return self._entries if at is not None and 0 <= now - at < FRESH_MICROSECONDS else None

    async def refresh(self, now: int) -> dict[Hashable, Any]:
        """The entries that can be trusted now. Put what you look up afterwards into the same dictionary."""
        if self.fresh_entries(now) is None:
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
