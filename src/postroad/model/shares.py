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
FIRST: Final = 2
# What slow attempts leave: with three seconds for each, 80 events a minute.
LEAST: Final = 4
# Accounts that are remembered. One that is forgotten is new again; those that hang should not be. About 200 bytes each.
MOST_REMEMBERED: Final = 50_000


class Kind(IntEnum):
    """What is known of an account's receiver. What each kind may have is part of what the one before it may have."""

    QUICK = 0
    NEW = 1
    SLOW = 2


@dataclass(slots=True, eq=False)
class Place:
    """The right to make one attempt; `since` is when that began."""

    account_id: str
    since: float


@dataclass(slots=True)
class _Share:
    """How much one account may have. `turn` says when it got a place the last time."""

    most: int
    kind: Kind = Kind.NEW
    turn: int = 0


class Shares:
    """Hands out places. Every place that was taken is given back, by `end` or by `give_back`."""

    def __init__(self, *, places: int, per_account: int) -> None:
        # What is left for each kind; less than nothing when others have become slow.
        self._left = [places, max(1, places // 2), max(1, places // 4)]
        self._per_account = per_account
        self._shares: dict[str, _Share] = {}  # whoever got a place last comes last
        self._busy: dict[str, set[Place]] = {}
        self._turns = 0

    @property
    def free(self) -> int:
        """The places that nobody has."""
        return self._left[0]

    def in_turn(self, account_ids: Iterable[str]) -> list[str]:
        """The accounts in the order in which they should be asked: new ones, then who has waited longest."""
        known = {account_id: self._share(account_id) for account_id in account_ids}
        return sorted(known, key=lambda account_id: (known[account_id].kind is not Kind.NEW, known[account_id].turn))

    def room(self, account_id: str) -> int:
        """How many places the account could have now."""
        share = self._share(account_id)
        return max(0, min(share.most - len(self._busy.get(account_id, ())), *self._left[: share.kind + 1]))

    def take(self, account_id: str, *, now: float) -> Place | None:
        """A place, if the account can have one."""
        if not self.room(account_id):
            return None
        place, share = Place(account_id, now), self._remember(account_id)
        self._turns += 1
        share.turn = self._turns
        self._busy.setdefault(account_id, set()).add(place)
        self._count(share.kind, 1)
        return place

    def begin(self, place: Place, *, now: float) -> None:
        """The attempt begins: what came before is not the receiver's fault."""
        place.since = now

    def end(self, place: Place, *, now: float) -> None:
        """The attempt has ended, and says something about the receiver."""
        self._leave(place)
        share, is_quick = self._shares[place.account_id], now - place.since < QUICK_SECONDS
        share.most = min(share.most + 1 if is_quick else max(LEAST, share.most // 2), self._per_account)
        self._judge(place.account_id, Kind.QUICK if is_quick else Kind.SLOW)

    def give_back(self, places: Iterable[Place]) -> None:
        """The places were not needed."""
        for place in places:
            self._leave(place)

    def look(self, *, now: float) -> None:
        """Find the accounts that have become slow, without waiting for their attempts to end."""
        for account_id, places in self._busy.items():
            if any(now - place.since >= QUICK_SECONDS for place in places):
                self._judge(account_id, Kind.SLOW)

    def _share(self, account_id: str) -> _Share:
        """The account's share; that of one that is not remembered is as good as new."""
        return self._shares.get(account_id) or _Share(min(FIRST, self._per_account))

    def _remember(self, account_id: str) -> _Share:
        share = self._share(account_id)
        self._shares.pop(account_id, None)
        self._shares[account_id] = share
        if len(self._shares) > MOST_REMEMBERED:
            idle = next((other for other in self._shares if other not in self._busy and other != account_id), None)
            if idle is not None:
                del self._shares[idle]
        return share

    def _leave(self, place: Place) -> None:
        places = self._busy[place.account_id]
        places.remove(place)
        if not places:
            del self._busy[place.account_id]
        self._count(self._shares[place.account_id].kind, -1)

    def _judge(self, account_id: str, kind: Kind) -> None:
        """What was found out holds for all places of the account."""
        share, held = self._shares[account_id], len(self._busy.get(account_id, ()))
        self._count(share.kind, -held)
        self._count(kind, held)
        share.kind = kind

    def _count(self, kind: Kind, places: int) -> None:
        for one in range(kind + 1):
            self._left[one] -= places
