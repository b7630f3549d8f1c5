"""How much of the engine an account may have, so that a slow or dead receiver delays nobody else.

There are so many places in all, and an attempt holds one. An account is new until an attempt of it has ended, quick
when its last one ended within a second, whatever the answer, and slow when it did not, or when one is under way for
longer. Quick ones may have all places. New and slow ones share half of them, and slow ones begin nothing beyond a
quarter: however many are known to hang, half is for those that answer and a quarter for those that were never tried.

An account begins with two places. Each quick attempt gives it one more, so that its share doubles with every round; a
slow one halves it, but leaves four: a receiver that works and takes its time is told enough. Times are seconds of any
clock that does not go back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

QUICK_SECONDS: Final = 1.0
INITIAL_SLOTS: Final = 2
# What slow attempts leave: with three seconds for each, 80 events a minute.
MIN_SLOTS: Final = 4
# Accounts that are remembered. One that is forgotten is new again; those that hang should not be. About 200 bytes each.
MAX_ACCOUNTS: Final = 50_000


class Kind(IntEnum):
    """What is known of an account's receiver. What each kind may have is part of what the one before it may have."""

    QUICK = 0
    NEW = 1
    SLOW = 2


@dataclass(slots=True, eq=False)
class Slot:
    """The right to make one attempt; `since` is when that began."""

    account_id: str
    since: float


@dataclass(slots=True)
class _AccountBudget:
    """How much one account may have. `turn` says when it got a place the last time."""

    limit: int
    kind: Kind = Kind.NEW
    turn: int = 0


class ConcurrencyBudget:
    """Hands out places. Every place that was taken is given back, by `end` or by `give_back`."""

    def __init__(self, *, slots: int, per_account: int) -> None:
        # What is left for each kind; less than nothing when others have become slow.
        self._left = [slots, max(1, slots // 2), max(1, slots // 4)]
        self._per_account = per_account
        self._accounts: dict[str, _AccountBudget] = {}  # whoever got a place last comes last
        self._busy: dict[str, set[Slot]] = {}
        self._turns = 0

    @property
    def free(self) -> int:
        """The places that nobody has."""
        return self._left[0]

    def by_priority(self, account_ids: Iterable[str]) -> list[str]:
        """The accounts in the order in which they should be asked: new ones, then who has waited longest."""
        known = {account_id: self._share(account_id) for account_id in account_ids}
        return sorted(known, key=lambda account_id: (known[account_id].kind is not Kind.NEW, known[account_id].turn))

    def available(self, account_id: str) -> int:
        """How many places the account could have now."""
        share = self._share(account_id)
        return max(0, min(share.limit - len(self._busy.get(account_id, ())), *self._left[: share.kind + 1]))

    def take(self, account_id: str, *, now: float) -> Slot | None:
        """A place, if the account can have one."""
        if not self.available(account_id):
            return None
        place, share = Slot(account_id, now), self._remember(account_id)
        self._turns += 1
        share.turn = self._turns
        self._busy.setdefault(account_id, set()).add(place)
        self._count(share.kind, 1)
        return place

    def begin(self, place: Slot, *, now: float) -> None:
        """The attempt begins: what came before is not the receiver's fault."""
        place.since = now

    def end(self, place: Slot, *, now: float) -> None:
        """The attempt has ended, and says something about the receiver."""
        self._leave(place)
        share, is_quick = self._accounts[place.account_id], now - place.since < QUICK_SECONDS
        share.limit = min(share.limit + 1 if is_quick else max(MIN_SLOTS, share.limit // 2), self._per_account)
        self._set_kind(place.account_id, Kind.QUICK if is_quick else Kind.SLOW)

    def release(self, slots: Iterable[Slot]) -> None:
        """The places were not needed."""
        for place in slots:
            self._leave(place)

    def mark_slow(self, *, now: float) -> None:
        """Find the accounts that have become slow, without waiting for their attempts to end."""
        for account_id, slots in self._busy.items():
            if any(now - place.since >= QUICK_SECONDS for place in slots):
                self._set_kind(account_id, Kind.SLOW)

    def _share(self, account_id: str) -> _AccountBudget:
        """The account's share; that of one that is not remembered is as good as new."""
        return self._accounts.get(account_id) or _AccountBudget(min(INITIAL_SLOTS, self._per_account))

    def _remember(self, account_id: str) -> _AccountBudget:
        share = self._share(account_id)
        self._accounts.pop(account_id, None)
        self._accounts[account_id] = share
        if len(self._accounts) > MAX_ACCOUNTS:
            idle = next((other for other in self._accounts if other not in self._busy and other != account_id), None)
            if idle is not None:
                del self._accounts[idle]
        return share

    def _leave(self, place: Slot) -> None:
        slots = self._busy[place.account_id]
        slots.remove(place)
        if not slots:
            del self._busy[place.account_id]
        self._count(self._accounts[place.account_id].kind, -1)

    def _set_kind(self, account_id: str, kind: Kind) -> None:
        """What was found out holds for all places of the account."""
        share, held = self._accounts[account_id], len(self._busy.get(account_id, ()))
        self._count(share.kind, -held)
        self._count(kind, held)
        share.kind = kind

    def _count(self, kind: Kind, slots: int) -> None:
        for one in range(kind + 1):
            self._left[one] -= slots
