"""Permits to hold a connection, shared fairly over all provider queues (docs/decisions/0013-fair-shares.md).

A permit counts for the account of the job under way. It also counts as a slow one of the account while the destination
is not known to be quick, and as soon as the attempt has lasted for `SLOW_SECONDS`, whether it ends or not. So an
account gets nearly all connections when it is alone, at most half of them for destinations that are not quick, and
whatever it holds, something is free for the next account. Destinations that are not quick leave a part to the others,
even if they belong to many accounts.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from postroad.concurrency import fairness
from postroad.model.delivery import fair_shares

# Most transactions take less than a second; a content filter that takes longer is no reason for suspicion yet.
SLOW_SECONDS: Final = 5.0
# The slow connections of an account that is alone: half.
SLOW_ALPHA: Final = 1.0
# All connections to destinations that are not known to be quick: they leave one of nine to the others. It exceeds what
# a few accounts may have, or those would block the first mail of others to new destinations; for the same reason, one
# that only turns slow does not count here.
ALL_SLOW: Final = fair_shares.Party("slow", 8.0)


def slow_of(account_id: str) -> fair_shares.Party:
    return fair_shares.Party(("slow", account_id), SLOW_ALPHA)


def parties(account_id: str, *, is_responsive: bool) -> fairness.Parties:
    """For whom a connection counts when it opens."""
    account = fair_shares.Party(account_id)
    return (account,) if is_responsive else (account, slow_of(account_id), ALL_SLOW)


class Permits:
    """Hands out permits."""

    def __init__(self, max_connections: int) -> None:
        self.semaphore: Final = fairness.FairSemaphore(max_connections)
        # Permits by when the attempt of their job began, the oldest first, and those without a job.
        self.working: Final[dict[Permit, float]] = {}
        self.idle: Final[dict[Permit, Callable[[], None]]] = {}
        self._alarm: asyncio.TimerHandle | None = None

    @contextlib.asynccontextmanager
    async def acquire(
        self, account_id: str, *, is_responsive: bool, on_slow: Callable[[], None], is_urgent: bool = False
    ) -> AsyncIterator["Permit"]:
        """Wait for a permit and hold it; `on_slow` is called when one of its jobs has lasted for `SLOW_SECONDS`.

        One for an urgent job comes before the others of its account, not before those of other accounts.
        """
        wanted = parties(account_id, is_responsive=is_responsive)
        if not self.semaphore.try_acquire(wanted):
            self._reclaim(wanted)
            await self.semaphore.wait(wanted, is_first=is_urgent)
        permit = Permit(self, account_id, is_responsive=is_responsive, on_slow=on_slow)
        try:
            yield permit
        finally:
            self.working.pop(permit, None)
            self.idle.pop(permit, None)
            self.semaphore.release(permit.parties)

    def _reclaim(self, wanted: fairness.Parties) -> None:
        """A job has to wait: the connection that has been idle for longest closes, if that helps."""
        permit, end_wait = next(iter(self.idle.items()), (None, None))
        if permit is not None and end_wait is not None and self.semaphore.would_help(permit.parties, wanted):
            del self.idle[permit]
            end_wait()

    def watch(self, permit: "Permit") -> None:
        """The attempt of its job begins: until it ends it can turn slow. Its other waits are not its fault."""
        loop = asyncio.get_running_loop()
        self.working[permit] = loop.time()
        if self._alarm is None:
            self._alarm = loop.call_later(SLOW_SECONDS, self._find_slow)

    def _find_slow(self) -> None:
        loop = asyncio.get_running_loop()
        self._alarm = None
        while self.working:
            permit, since = next(iter(self.working.items()))
            if loop.time() < since + SLOW_SECONDS:
                self._alarm = loop.call_at(since + SLOW_SECONDS, self._find_slow)
                return
            del self.working[permit]
            permit.turn_slow()


class Permit:
    """The right to hold a connection, and for whom it counts."""

    __slots__ = ("_as", "_on_slow", "_permits", "parties", "was_slow")

    def __init__(self, permits: Permits, account_id: str, *, is_responsive: bool, on_slow: Callable[[], None]) -> None:
        self._permits = permits
        self._as = (account_id, is_responsive)
        self._on_slow = on_slow
        self.parties = parties(account_id, is_responsive=is_responsive)
        self.was_slow = False  # whether the job under way, or the last one, was slow

    def begin(self, account_id: str, *, is_responsive: bool) -> bool:
        """Begin a job; False when its account has no share, or an account that holds less waits."""
        semaphore = self._permits.semaphore
        if semaphore.is_contended or self.was_slow or (account_id, is_responsive) != self._as:
            wanted = parties(account_id, is_responsive=is_responsive)
            if not semaphore.exchange(self.parties, wanted):
                return False
            self._as, self.parties, self.was_slow = (account_id, is_responsive), wanted, False
        self._permits.idle.pop(self, None)
        return True

    @property
    def is_wanted(self) -> bool:
        return self._permits.semaphore.is_wanted(self.parties)

    def begin_idle(self, end_wait: Callable[[], None]) -> None:
        """Wait for the next job, until another one needs the permit."""
        self._permits.idle[self] = end_wait

    def turn_slow(self) -> None:
        """The job has lasted for `SLOW_SECONDS`."""
        account_id, is_responsive = self._as
        self.was_slow = True
        if is_responsive:
            party = slow_of(account_id)
            self.parties = (*self.parties, party)
            self._permits.semaphore.count(party, 1)
        self._on_slow()
