"""What a process remembers about callers and domains, trusted at most half a second after anything changed.

The store counts the changes to everything that decides access. That number is read at most twice a second, by one
request for all; when it has moved, everything remembered is dropped. So a revocation is felt within a second in every
process, and the hot path asks the store nothing. A look-up that began before the drop writes into the dropped
dictionary, where nobody reads it.
"""

import asyncio
import hashlib
import os
from collections.abc import Hashable
from typing import Any, Final

from postroad.services.auth import last_used, login_failures
from postroad.storage import access_version, store

FRESH_MICROSECONDS: Final = 500_000
# Some 30 MB of callers. Beyond it everything is dropped: each entry comes back with one look-up.
MAX_ENTRIES: Final = 50_000
KEY_BYTES: Final = 32


class AccessCache:
    """The memory of this process; it also knows who failed lately and which credentials were used."""

    def __init__(self, database: store.Store) -> None:
        self.login_failures = login_failures.LoginFailures()
        self.last_used = last_used.LastUsedRecorder(database)
        self._database = database
        self._key = os.urandom(KEY_BYTES)
        self._entries: dict[Hashable, Any] = {}
        self._version: int | None = None
        self._checked_at: int | None = None
        self._version_check: asyncio.Task[None] | None = None
        self._version_checks: set[asyncio.Task[None]] = set()

    def get_fresh(self, cache_key: Hashable, *, now: int) -> Any | None:  # noqa: ANN401 - facts are of many kinds
        """A fact that may be trusted now without asking; None when it is not known or the time to ask has come."""
        return self._entries.get(cache_key) if self._is_fresh(now) else None

    def _is_fresh(self, now: int) -> bool:
        # A clock that was set back must not make old facts young.
        return self._checked_at is not None and 0 <= now - self._checked_at < FRESH_MICROSECONDS

    async def refresh(self, now: int) -> dict[Hashable, Any]:
        """The facts that may be trusted now; put what you looked up since into the same dictionary."""
        if not self._is_fresh(now):
            await asyncio.shield(self._version_check or self._start_version_check(now))
        if len(self._entries) > MAX_ENTRIES:
            self._entries = {}
        return self._entries

    def invalidate(self) -> None:
        """After a change that this process has committed: the next recall asks, and joins no question asked before."""
        self._entries = {}
        self._version = self._checked_at = self._version_check = None

    def digest(self, secret: str) -> bytes:
        """What stands for a secret in memory: worthless outside this process."""
        return hashlib.blake2b(secret.encode(errors="surrogatepass"), key=self._key, digest_size=KEY_BYTES).digest()

    async def close(self) -> None:
        """Finish what runs in the background."""
        if self._version_checks:
            await asyncio.wait(self._version_checks)
        await self.last_used.close()

    def _start_version_check(self, now: int) -> asyncio.Task[None]:
        question = asyncio.get_running_loop().create_task(self._check_version(now))
        self._version_check = question
        self._version_checks.add(question)
        question.add_done_callback(self._end_version_check)
        return question

    def _end_version_check(self, question: asyncio.Task[None]) -> None:
        self._version_checks.discard(question)
        if not question.cancelled():
            # Whoever waited got it; when they all have gone, nobody needs to hear of it.
            question.exception()

    async def _check_version(self, now: int) -> None:
        loop, question = asyncio.get_running_loop(), asyncio.current_task()
        started = loop.time()
        try:
            async with self._database.reading() as tx:
                version = await access_version.version(tx)
        finally:
            is_current = self._version_check is question
            if is_current:
                self._version_check = None
        if not is_current:  # something was changed here since: this answer may be from before it
            return
        is_late = (loop.time() - started) * 1_000_000 >= FRESH_MICROSECONDS
        if version != self._version or is_late:
            self._entries = {}
        self._version, self._checked_at = version, now
