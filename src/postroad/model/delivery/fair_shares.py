"""Fair shares of a limited resource, by the dynamic threshold of shared-buffer switches (Choudhury and Hahne, 1998).

A party may take another unit while it holds fewer than `alpha` times what is free. So a party that is alone gets
alpha / (1 + alpha) of everything, several that want more get equal parts, and something is always free for the next
one if there are more than `alpha` units: nobody configures shares, and nobody can take them all. Whoever asks for a
unit names every party that it counts for, such as an account and its slow connections, and gets it when each of them
may have it.
"""

import collections
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, Generic, TypeVar

import msgspec

# A party that is alone gets four fifths; of two, each gets four ninths.
ALPHA: Final = 4.0

Waiter = TypeVar("Waiter")
PartyName = TypeVar("PartyName", bound=Hashable)


class Party(msgspec.Struct, frozen=True):
    """Somebody for whom units are counted."""

    name: Hashable
    alpha: float = ALPHA


# 0 or more; whoever has less is next.
Rank = Callable[[Party], float]


class FairShares:
    """Who holds how much of a resource."""

    def __init__(self, units: int) -> None:
        self.free = self._units = units
        self._held: dict[Hashable, int] = {}

    def resize(self, units: int) -> None:
        """There are more units from now on, or fewer; whoever holds some keeps them."""
        self.free += units - self._units
        self._units = units

    def held(self, party: Party) -> int:
        return self._held.get(party.name, 0)

    def has_share(self, party: Party) -> bool:
        """Whether the party may take another unit."""
        return self._held.get(party.name, 0) < party.alpha * self.free

    def room(self, party: Party) -> int:
        """How many units the party may take one after the other, if nobody else takes any."""
        return max(0, math.ceil((party.alpha * self.free - self.held(party)) / (1 + party.alpha)))

    def with_room(self, names: Iterable[PartyName], units: int, alpha: float = ALPHA) -> set[PartyName]:
        """The parties whose room is at least so many units."""
        most = alpha * self.free - (1 + alpha) * (units - 1)
        return {name for name in names if self._held.get(name, 0) < most}

    def take(self, parties: Sequence[Party], units: int = 1) -> bool:
        """Take units that count for all of the parties; False if one of them may not have them."""
        if units > self.free or not all(map(self.has_share, parties)):
            return False
        self.add(parties, units)
        return True

    def add(self, parties: Sequence[Party], units: int = 1) -> None:
        """Take units whether the parties may have them or not: they held them a moment ago."""
        self.free -= units
        held = self._held
        for party in parties:
            held[party.name] = held.get(party.name, 0) + units

    def give_back(self, parties: Sequence[Party], units: int = 1) -> None:
        self.free += units
        held = self._held
        for party in parties:
            if left := held[party.name] - units:
                held[party.name] = left
            else:
                del held[party.name]

    def count(self, party: Party, change: int) -> None:
        """Let units that are held already count for another party as well, or no longer."""
        held = self.held(party) + change
        if held:
            self._held[party.name] = held
        else:
            del self._held[party.name]


class FairQueue(Generic[Waiter]):
    """Those that wait for a unit. The first party of each, such as an account, decides the order.

    The one with the least `rank` comes first, which is what it holds unless another one is given, and of equals the one
    that has waited longest since its last turn. However many wait, finding the next costs little: the waiters of a
    party are one, whoever has the rank 0 is taken at once, and no more parties can hold something than there are units.
    """

    def __init__(self, shares: FairShares, *, rank: Rank | None = None) -> None:
        self._shares = shares
        self._rank = rank or shares.held
        # By the last of several parties, which many have in common, and which refuses all of them at once.
        self._waiting: dict[Sequence[Party], dict[tuple[Party, ...], collections.deque[Waiter]]] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def is_waiting(self, parties: tuple[Party, ...]) -> bool:
        """Whether somebody waits for the same parties."""
        return parties in self._waiting.get(parties[1:][-1:], ())

    def push(self, parties: tuple[Party, ...], waiter: Waiter, *, is_first: bool = False) -> None:
        """Wait for a unit that counts for the parties, after all others that do, or before them."""
        alike = self._waiting.setdefault(parties[1:][-1:], {})
        waiters = alike.setdefault(parties, collections.deque())
        if is_first:
            waiters.appendleft(waiter)
        else:
            waiters.append(waiter)

    def first(self) -> tuple[Party, ...] | None:
        """The parties of the next that may have a unit."""
        best, least = None, 0.0
        for common, alike in self._waiting.items():
            if not self._shares.free or not all(map(self._shares.has_share, common)):
                continue
            for parties in alike:
                rank = self._rank(parties[0])
                if (best is None or rank < least) and all(map(self._shares.has_share, parties)):
                    if not rank:
                        return parties
                    best, least = parties, rank
        return best

    def pop(self, parties: tuple[Party, ...]) -> Waiter:
        """The one that has waited longest for the parties; its unit counts for them from now on."""
        self._shares.add(parties)
        alike = self._waiting[parties[1:][-1:]]
        waiters = alike.pop(parties)
        waiter = waiters.popleft()
        if waiters:
            alike[parties] = waiters  # now the last
        elif not alike:
            del self._waiting[parties[1:][-1:]]
        return waiter

    def discard(self, parties: tuple[Party, ...], waiter: Waiter) -> None:
        """Somebody waits no longer."""
        alike = self._waiting.get(parties[1:][-1:], {})
        if waiter not in alike.get(parties, ()):
            return
        alike[parties].remove(waiter)
        if not alike[parties]:
            del alike[parties]
        if not alike:
            del self._waiting[parties[1:][-1:]]


# Whose turn it is: parties with items take turns, and urgent items go first without taking more than their turns.
#
# Of a party's items the urgent ones come first. A party with an urgent item goes ahead of the others once in a round:
# its turn of that round is used up by it, even if all its items are taken meanwhile and new ones arrive. So a party
# gets as many turns as any other that waits, however many of its items are urgent; it only gets each of them earlier.

Item = TypeVar("Item")


class Turns(Generic[PartyName, Item]):
    """Items of several parties."""

    def __init__(self) -> None:
        self._plain: dict[PartyName, collections.deque[Item]] = {}
        self._urgent: dict[PartyName, collections.deque[Item]] = {}
        # The order of turns, and whether that turn was used up ahead of its time. A party with a used turn keeps its
        # place without any items.
        self.turns: dict[PartyName, bool] = {}
        self.count = 0

    def add(self, party: PartyName, item: Item, *, is_urgent: bool = False) -> None:
        """Add an item; a new party comes last."""
        items = self._urgent if is_urgent else self._plain
        items.setdefault(party, collections.deque()).append(item)
        self.turns.setdefault(party, False)
        self.count += 1

    def has_urgent(self, party: PartyName) -> bool:
        return party in self._urgent

    def parties(self) -> Iterator[PartyName]:
        """Those that have items, the one whose turn it is first."""
        return self._in_turn() if len(self.turns) > 1 or not self.count else iter(self.turns)

    def _in_turn(self) -> Iterator[PartyName]:
        ahead = [party for party in self._urgent if not self.turns[party]] if self._urgent else ()
        yield from ahead
        # A used turn is not taken again as long as another party can take one.
        yield from (party for party, is_used in self.turns.items() if not is_used and party not in ahead)
        yield from (party for party, is_used in self.turns.items() if is_used and self._has_items(party))

    def take(self, party: PartyName) -> Item:
        is_ahead = party in self._urgent and not self.turns[party] and next(iter(self.turns)) != party
        items = self._urgent if party in self._urgent else self._plain
        queued = items.pop(party)
        item = queued.popleft()
        if queued:
            items[party] = queued  # now the last of those with such items
        self.count -= 1
        if is_ahead:
            self.turns[party] = True
        else:
            self._end_turn(party)
        return item

    def remove_urgent(self, is_over: Callable[[Item], bool]) -> list[Item]:
        """Remove urgent items for which this is so, and return them. Nobody has had a turn."""
        removed: list[Item] = []
        for party, queued in list(self._urgent.items()):
            over = [item for item in queued if is_over(item)]
            removed += over
            for item in over:
                queued.remove(item)
            if not queued:
                del self._urgent[party]
            if not self._has_items(party) and not self.turns[party]:
                del self.turns[party]
        self.count -= len(removed)
        return removed

    def clear(self) -> list[Item]:
        """Remove all items, and return them."""
        items = [item for queues in (self._urgent, self._plain) for queued in queues.values() for item in queued]
        self._plain.clear()
        self._urgent.clear()
        self.turns.clear()
        self.count = 0
        return items

    def _end_turn(self, party: PartyName) -> None:
        """The party is the last from now on; parties whose turn is used up, and comes now, have it behind them."""
        del self.turns[party]
        if self._has_items(party):
            self.turns[party] = False
        while self.turns and self.turns[first := next(iter(self.turns))]:
            del self.turns[first]
            if self._has_items(first):
                self.turns[first] = False

    def _has_items(self, party: PartyName) -> bool:
        return party in self._urgent or party in self._plain
