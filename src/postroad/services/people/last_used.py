"""Records when secrets and sessions were last used, at most once a minute each and never in a request's path.

A use is noted in memory; a background task writes the collected ones. The data is informational: a note that cannot
be written is dropped, and the last second before a crash is lost.
"""

import asyncio
import contextlib
from typing import Final

from postroad import errors
from postroad.storage.engine import store
from postroad.storage.people import credentials, sessions

MIN_INTERVAL_MICROSECONDS: Final = 60_000_000
# Collects the uses of many callers into one transaction, out of the way of the send that caused them.
FLUSH_DELAY_SECONDS: Final = 1.0
# One short transaction: this many updates take some milliseconds.
MAX_BATCH_ROWS: Final = 256
MAX_NOTED: Final = 50_000

CREDENTIAL: Final = "credential"
API_KEY: Final = "api_key"
SESSION: Final = "session"
_TOUCH: Final = {CREDENTIAL: credentials.touch, API_KEY: credentials.touch_key, SESSION: sessions.touch}
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
