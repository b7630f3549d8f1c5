"""Files for messages that are still arriving, and turns for processing them, both shared fairly.

A client that sends hundreds of large messages at once, and slowly, must fill neither the memory nor the disk. What
exceeds the first part of a message goes to an unlinked temporary file, which vanishes with the process. The files of
all sessions have a common budget, of which nobody gets everything; without room, and when the disk is full, the client
is told to try again. A complete message is read back when its turn has come, so few are in memory at the same time.
"""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Any, Final

from postroad.concurrency import fairness
from postroad.model.delivery import fair_shares

UNIT_OCTETS: Final = 1024 * 1024
DEFAULT_MEGABYTES: Final = 1024
# Each needs several times its size for some tenths of a second.
MAX_PROCESSING: Final = 2
# Clients wait ten minutes for the reply to their content (RFC 5321 section 4.5.3.2.6).
TURN_SECONDS: Final = 60.0


class ContentSpool:
    """The budget and the turns of the listeners that share it. `failed` is told why a file cannot be written."""

    def __init__(
        self,
        folder: str | None = None,
        *,
        megabytes: int = DEFAULT_MEGABYTES,
        failed: Callable[[OSError], object] | None = None,
    ) -> None:
        self.folder = folder
        self.failed = failed
        self.shares = fair_shares.FairShares(megabytes)
        self._turns = fairness.FairSemaphore(MAX_PROCESSING)

    def open(self, owner: Hashable) -> "SpooledContent":
        """An empty store, which counts for its owner."""
        return SpooledContent(self, fair_shares.Party(owner))

    @contextlib.asynccontextmanager
    async def turn(self, owner: Hashable) -> AsyncIterator[None]:
        """Wait until there is memory for a large message of the owner. Raises TimeoutError."""
        async with contextlib.AsyncExitStack() as held:
            async with asyncio.timeout(TURN_SECONDS):
                await held.enter_async_context(self._turns.hold(owner))
            yield


class SpooledContent:
    """One content in a file, which is created with its first part."""

    def __init__(self, spool: ContentSpool, owner: fair_shares.Party) -> None:
        self._spool = spool
        self._owner = owner
        self._file: Any = None
        self._octets = 0
        self._units = 0

    def write(self, part: bytes) -> bool:
        """Append a part; False when the budget or the disk has no room for it."""
        self._octets += len(part)
        while self._units * UNIT_OCTETS < self._octets:
            if not self._spool.shares.take((self._owner,)):
                return False
            self._units += 1
        try:
            self._append(memoryview(part))
        except OSError as problem:
            if self._spool.failed is not None:
                self._spool.failed(problem)
            return False
        return True

    def read(self) -> bytes:
        self._file.seek(0)
        content: bytes = self._file.read()
        return content

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        for _ in range(self._units):
            self._spool.shares.give_back((self._owner,))
        self._units = 0

    def _append(self, part: memoryview) -> None:
        if self._file is None:
            # Without a buffer: parts are large, and an error belongs to the part that it is about.
            self._file = tempfile.TemporaryFile(dir=self._spool.folder, buffering=0)  # noqa: SIM115
        while part:
            part = part[self._file.write(part) :]
