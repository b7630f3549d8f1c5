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

from postroad.services import failures, uses
from postroad.storage import access, store

TRUSTED_MICROSECONDS: Final = 500_000
# Some 30 MB of callers. Beyond it everything is dropped: each entry comes back with one look-up.
MOST_FACTS: Final = 50_000
KEY_BYTES: Final = 32


class Memory:
    """The memory of this process; it also knows who failed lately and which credentials were used."""

    def __init__(self, database: store.Store) -> None:
        self.failures = failures.Failures()
        self.uses = uses.Uses(database)
        self._database = database
        self._key = os.urandom(KEY_BYTES)
        self._facts: dict[Hashable, Any] = {}
        self._version: int | None = None
        self._asked_at: int | None = None
        self._question: asyncio.Task[None] | None = None
        self._questions: set[asyncio.Task[None]] = set()

    def glance(self, fact: Hashable, *, now: int) -> Any | None:  # noqa: ANN401 - facts are of many kinds
        """A fact that may be trusted now without asking; None when it is not known or the time to ask has come."""
        return self._facts.get(fact) if self._is_fresh(now) else None

    def _is_fresh(self, now: int) -> bool:
        # A clock that was set back must not make old facts young.
        return self._asked_at is not None and 0 <= now - self._asked_at < TRUSTED_MICROSECONDS

    async def recall(self, now: int) -> dict[Hashable, Any]:
        """The facts that may be trusted now; put what you looked up since into the same dictionary."""
        if not self._is_fresh(now):
            await asyncio.shield(self._question or self._start_question(now))
        if len(self._facts) > MOST_FACTS:
            self._facts = {}
        return self._facts

    def forget(self) -> None:
        """After a change that this process has committed: the next recall asks, and joins no question asked before."""
        self._facts = {}
        self._version = self._asked_at = self._question = None

    def digest(self, secret: str) -> bytes:
        """What stands for a secret in memory: worthless outside this process."""
        return hashlib.blake2b(secret.encode(errors="surrogatepass"), key=self._key, digest_size=KEY_BYTES).digest()

    async def close(self) -> None:
        """Finish what runs in the background."""
        if self._questions:
            await asyncio.wait(self._questions)
        await self.uses.close()

    def _start_question(self, now: int) -> asyncio.Task[None]:
        question = asyncio.get_running_loop().create_task(self._ask(now))
        self._question = question
        self._questions.add(question)
        question.add_done_callback(self._end_question)
        return question

    def _end_question(self, question: asyncio.Task[None]) -> None:
        self._questions.discard(question)
        if not question.cancelled():
            # Whoever waited got it; when they all have gone, nobody needs to hear of it.
            question.exception()

    async def _ask(self, now: int) -> None:
        loop, question = asyncio.get_running_loop(), asyncio.current_task()
        started = loop.time()
        try:
            async with self._database.reading() as tx:
                version = await access.version(tx)
        finally:
            is_current = self._question is question
            if is_current:
                self._question = None
        if not is_current:  # something was changed here since: this answer may be from before it
            return
        is_late = (loop.time() - started) * 1_000_000 >= TRUSTED_MICROSECONDS
        if version != self._version or is_late:
            self._facts = {}
        self._version, self._asked_at = version, now
