"""How much of the engine an account may have, so that a slow or dead receiver delays nobody else.

There are so many places in all, and an attempt holds one. An account begins with two. Each attempt that ends within a
second, whatever the answer, gives it one more, so that its share doubles with every round; each that does not halves
it. An account whose last attempt was quick is proven, until one of its attempts is under way for more than a second.
All accounts that are not proven share half of the places: however many receivers hang, the other half is for those that
answer. Times are seconds of any clock that does not go back.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

QUICK_SECONDS: Final = 1.0
FIRST: Final = 2
# Accounts that are remembered; one that is forgotten begins again, which costs it a few rounds. About 300 bytes each.
MOST_REMEMBERED: Final = 10_000


@dataclass(slots=True, eq=False)
class Place:
    """The right to make one attempt; `since` is when that began."""

    account_id: str
    since: float


@dataclass(slots=True)
class _Share:
    """What one account has, and how much it may have. `turn` says when it got a place the last time."""

    most: int
    is_quick: bool = False
    turn: int = 0
    places: set[Place] = field(default_factory=set)


class Shares:
    """Hands out places. Every place that was taken is given back, by `end` or by `give_back`."""

    def __init__(self, *, places: int, per_account: int) -> None:
        self.free = places
        self._unproven_room = max(1, places // 2)
        self._per_account = per_account
        self._shares: dict[str, _Share] = {}  # whoever got a place last comes last
        self._busy: dict[str, _Share] = {}
        self._turns = 0

    def in_turn(self, account_ids: Iterable[str]) -> list[str]:
        """The accounts in the order in which they should be asked: who has waited longest comes first."""
        return sorted(account_ids, key=lambda account_id: self._share(account_id).turn)

    def room(self, account_id: str) -> int:
        """How many places the account could have now."""
        share = self._share(account_id)
        room = min(self.free, share.most - len(share.places))
        return max(0, room if share.is_quick else min(room, self._unproven_room))

    def take(self, account_id: str, *, now: float) -> Place | None:
        """A place, if the account can have one."""
        if not self.room(account_id):
            return None
        place, share = Place(account_id, now), self._remember(account_id)
        self._turns += 1
        share.turn = self._turns
        share.places.add(place)
        self._busy[account_id] = share
        self._count(share, 1)
        return place

    def begin(self, place: Place, *, now: float) -> None:
        """The attempt begins: what came before is not the receiver's fault."""
        place.since = now

    def end(self, place: Place, *, now: float) -> None:
        """The attempt has ended, and says something about the receiver."""
        share = self._leave(place)
        is_quick = now - place.since < QUICK_SECONDS
        share.most = min(share.most + 1, self._per_account) if is_quick else max(1, share.most // 2)
        self._judge(share, is_quick=is_quick)

    def give_back(self, places: Iterable[Place]) -> None:
        """The places were not needed."""
        for place in places:
            self._leave(place)

    def look(self, *, now: float) -> None:
        """Find the accounts that have stopped being quick, without waiting for their attempts to end."""
        for share in self._busy.values():
            if share.is_quick and any(now - place.since >= QUICK_SECONDS for place in share.places):
                self._judge(share, is_quick=False)

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

    def _leave(self, place: Place) -> _Share:
        share = self._busy[place.account_id]
        share.places.remove(place)
        if not share.places:
            del self._busy[place.account_id]
        self._count(share, -1)
        return share

    def _count(self, share: _Share, places: int) -> None:
        self.free -= places
        if not share.is_quick:
            self._unproven_room -= places

    def _judge(self, share: _Share, *, is_quick: bool) -> None:
        if is_quick != share.is_quick:
            share.is_quick = is_quick
            self._unproven_room += len(share.places) if is_quick else -len(share.places)
