"""The leases of one worker: renewed while mail is under way, and released on a stop.

An expired lease frees its recipient for other workers. That happens only when this process is dead or stalled, or the
database was unavailable for longer than a lease. After that, this worker begins nothing that others may have claimed.

Accounts share the leases: what waits in memory for a connection is bounded, however many destinations it is for.
"""

import asyncio
import collections
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from postroad import errors
from postroad.model.delivery import fair_shares
from postroad.model.mail import limits
from postroad.model.units import times
from postroad.storage.engine import store
from postroad.storage.mail import queue
from postroad.telemetry import logs

# A renewal may fail twice before a lease expires.
RENEWALS_PER_LEASE: Final = 3
# Leases renewed or released in one transaction, which stays short.
BATCH_LEASES: Final = 500
# Enough to keep 1,000 connections busy (`job_capacity`).
MAX_LEASES: Final = 20_000
# An account alone gets four fifths of them, and a few more for urgent mail.
URGENT_ALPHA: Final = 2 * fair_shares.ALPHA


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
        self._shares = fair_shares.FairShares(MAX_LEASES)
        self._reserved: collections.Counter[str] = collections.Counter()

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def __len__(self) -> int:
        return len(self._held)

    def until(self) -> int:
        """When a lease that begins now ends."""
        return self._clock() + self._seconds * times.SECOND

    def room(self, account_id: str, alpha: float = fair_shares.ALPHA) -> int:
        """How many more messages of an account may be claimed: each may bring all of its recipients."""
        return self._shares.room(fair_shares.Party(account_id, alpha)) // limits.UNIQUE_RECIPIENTS

    def reserve(self, account_id: str, messages: int, alpha: float = fair_shares.ALPHA) -> int:
        """How many messages of an account may be claimed, at most so many; they count until `end_reservations`."""
        messages = min(messages, self.room(account_id, alpha))
        if messages > 0:
            self._reserved[account_id] += messages * limits.UNIQUE_RECIPIENTS
            self._shares.add((fair_shares.Party(account_id),), messages * limits.UNIQUE_RECIPIENTS)
        return messages

    def end_reservations(self) -> None:
        """The claims for which there were reservations are held now, or were not made."""
        for account_id, units in self._reserved.items():
            self._shares.give_back((fair_shares.Party(account_id),), units)
        self._reserved.clear()

    def take(self, claims: Iterable[queue.Claimed]) -> list[queue.Claimed]:
        """Hold claims; returns the new ones. One that is held already was claimed again after a late renewal."""
        until = self.until()
        taken = list(claims)
        new = [claim for claim in taken if claim.key not in self._held]
        for claim in new:
            self._shares.add((fair_shares.Party(claim.account_id),))
        self._held.update((claim.key, until) for claim in taken)
        return new

    def are_safe(self, keys: Iterable[queue.Key]) -> bool:
        """Whether delivery may begin: no renewal is overdue, so no other worker has claimed these."""
        soon = self._clock() + self._seconds * times.SECOND // RENEWALS_PER_LEASE
        return all(self._held.get(key, 0) > soon for key in keys)

    def drop(self, keys: Iterable[queue.Key]) -> None:
        """Drop claims whose result is recorded."""
        for key in keys:
            if self._held.pop(key, None) is not None:
                self._shares.give_back((fair_shares.Party(key[0]),))

    async def release(self, keys: Sequence[queue.Key]) -> None:
        """Release recipients that were not attempted: nothing is counted, and they can be claimed at once."""
        self.drop(keys)
        try:
            for batch in _batches(keys):
                async with self._database.transaction() as tx:
                    await queue.release(tx, batch, now=self._clock(), worker=self.worker)
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
        for batch in _batches(list(self._held)):
            until = self.until()
            async with self._database.transaction() as tx:
                extended = await queue.extend(tx, batch, lease_until=until, worker=self.worker)
            self._held.update((key, until) for key in extended if key in self._held)


def _batches(keys: Sequence[queue.Key]) -> Iterator[Sequence[queue.Key]]:
    for first in range(0, len(keys), BATCH_LEASES):
        yield keys[first : first + BATCH_LEASES]
