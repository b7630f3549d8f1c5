"""The queue's high-water mark: submissions are refused while far more is queued than can be delivered soon.

The queue length is checked in the background, at most every ten seconds and less often when the check is slow, so a
send only reads a flag. The limit is therefore not exact: what arrives between two checks is accepted.
"""

import asyncio
import contextlib
import time
from typing import Final

from postroad import errors
from postroad.concurrency import poll_loop
from postroad.storage import queue, store

REFRESH_SECONDS: Final = 10.0
# A long queue takes long to count: at most a twentieth of the time is spent on it.
REST_FACTOR: Final = 20
RETRY_SECONDS: Final = 30


class QueueLimit:
    """Whether the queue exceeded the limit at the last check."""

    def __init__(self, database: store.Store, *, max_recipients: int) -> None:
        self._database = database
        self.max_recipients = max_recipients
        self._is_over = False
        self._refresh_at = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None

    def check(self) -> None:
        """Raise ServiceUnavailable while the queue exceeds the limit."""
        if time.monotonic() >= self._refresh_at and (self._refreshing is None or self._refreshing.done()):
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())
        if self._is_over:
            msg = (
                f"the queue is full: more than {self.max_recipients} recipients are waiting for delivery; "
                "nothing was accepted"
            )
            raise errors.ServiceUnavailable(msg, retry_after=RETRY_SECONDS)

    async def close(self) -> None:
        """Cancel a running check."""
        if self._refreshing is not None:
            await poll_loop.cancel(self._refreshing)

    async def _refresh(self) -> None:
        began = time.monotonic()
        # An unreachable database is reported to senders anyway; it says nothing about the queue.
        with contextlib.suppress(errors.PostroadError):
            async with self._database.scanning() as tx:
                self._is_over = await queue.is_longer_than(tx, self.max_recipients)
        now = time.monotonic()
        self._refresh_at = now + max(REFRESH_SECONDS, REST_FACTOR * (now - began))
