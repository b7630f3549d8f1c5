"""The leases of one worker: renewed while mail is under way, and released on a stop.

An expired lease frees its recipient for other workers. That happens only when this process is dead or stalled, or the
database was unavailable for longer than a lease. After that, this worker begins nothing that others may have claimed.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from postroad import errors
from postroad.model import times
from postroad.storage import queue, store
from postroad.telemetry import logs

# A renewal may fail twice before a lease expires.
RENEWALS_PER_LEASE: Final = 3


class Leases:
    """The claims of one worker."""

    def __init__(
        self, database: store.Store, *, worker: str, seconds: int, clock: Callable[[], int], log: logs.Logger
    ) -> None:
        self.worker = worker
        self._database = database
        self._seconds = seconds
        self._clock = clock
        self._log = log
        self._held: dict[queue.Key, int] = {}  # expiry

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def until(self) -> int:
        """When a lease that begins now ends."""
        return self._clock() + self._seconds * times.SECOND

    def take(self, claims: Iterable[queue.Claimed]) -> list[queue.Claimed]:
        """Hold claims; returns the new ones. One that is held already was claimed again after a late renewal."""
        until = self.until()
        taken = list(claims)
        new = [claim for claim in taken if claim.key not in self._held]
        self._held.update((claim.key, until) for claim in taken)
        return new

    def are_safe(self, keys: Iterable[queue.Key]) -> bool:
        """Whether delivery may begin: no renewal is overdue, so no other worker has claimed these."""
        soon = self._clock() + self._seconds * times.SECOND // RENEWALS_PER_LEASE
        return all(self._held.get(key, 0) > soon for key in keys)

    def drop(self, keys: Iterable[queue.Key]) -> None:
        """Drop claims whose result is recorded."""
        for key in keys:
            self._held.pop(key, None)

    async def release(self, keys: Sequence[queue.Key]) -> None:
        """Release recipients that were not attempted: nothing is counted, and they can be claimed at once."""
        self.drop(keys)
        try:
            async with self._database.transaction() as tx:
                await queue.release(tx, keys, now=self._clock(), worker=self.worker)
        except store.UNAVAILABLE as error:
            # They are claimed again when the lease expires.
            self._log.warning("lease_release_failed", recipients=len(keys), error=error.message)

    async def renew_forever(self) -> None:
        """Renew the held leases until cancelled."""
        while True:
            await asyncio.sleep(self._seconds / RENEWALS_PER_LEASE)
            try:
                await self._renew()
            except errors.PostroadError as error:
                self._log.warning("lease_renewal_failed", recipients=len(self._held), error=error.message)

    async def _renew(self) -> None:
        if not self._held:
            return
        until = self.until()
        async with self._database.transaction() as tx:
            extended = await queue.extend(tx, list(self._held), lease_until=until, worker=self.worker)
        self._held.update((key, until) for key in extended if key in self._held)
