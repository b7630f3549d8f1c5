"""Whose turn it is: parties with items take turns, and urgent items go first without taking more than their turns.

Of a party's items the urgent ones come first. A party with an urgent item goes ahead of the others once in a round: its
turn of that round is used up by it, even if all its items are taken meanwhile and new ones arrive. So a party gets as
many turns as any other that waits, however many of its items are urgent; it only gets each of them earlier.
"""

import collections
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

PartyName = TypeVar("PartyName", bound=Hashable)
Item = TypeVar("Item")


class Turns(Generic[PartyName, Item]):
    """Items of several parties."""

    def __init__(self) -> None:
        self._plain: dict[PartyName, collections.deque[Item]] = {}
        self._urgent: dict[PartyName, collections.deque[Item]] = {}
        # The order of turns, and whether that turn was used up ahead of its time. A party with a used turn keeps its
        # place without any items.
        self._used: dict[PartyName, bool] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, party: PartyName, item: Item, *, is_urgent: bool = False) -> None:
        """Add an item; a new party comes last."""
        items = self._urgent if is_urgent else self._plain
        items.setdefault(party, collections.deque()).append(item)
        self._used.setdefault(party, False)
        self._count += 1

    def has_urgent(self, party: PartyName) -> bool:
        """Whether the party has an urgent item."""
        return party in self._urgent

    def parties(self) -> Iterator[PartyName]:
        """Those that have items, the one whose turn it is first."""
        ahead = [party for party in self._urgent if not self._used[party]] if self._urgent else ()
        yield from ahead
        # A used turn is not taken again as long as another party can take one.
        yield from (party for party, is_used in self._used.items() if not is_used and party not in ahead)
        yield from (party for party, is_used in self._used.items() if is_used and self._has_items(party))

    def take(self, party: PartyName) -> Item:
        """The next item of a party that has one."""
        is_ahead = party in self._urgent and not self._used[party] and next(iter(self._used)) != party
        items = self._urgent if party in self._urgent else self._plain
        queued = items.pop(party)
        item = queued.popleft()
        if queued:
            items[party] = queued  # now the last of those with such items
        self._count -= 1
        if is_ahead:
            self._used[party] = True
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
            if not self._has_items(party) and not self._used[party]:
                del self._used[party]
        self._count -= len(removed)
        return removed

    def clear(self) -> list[Item]:
        """Remove all items, and return them."""
        items = [item for queues in (self._urgent, self._plain) for queued in queues.values() for item in queued]
        self._plain.clear()
        self._urgent.clear()
        self._used.clear()
        self._count = 0
        return items

    def _end_turn(self, party: PartyName) -> None:
        """The party is the last from now on; parties whose turn is used up, and comes now, have it behind them."""
        del self._used[party]
        if self._has_items(party):
            self._used[party] = False
        while self._used and self._used[first := next(iter(self._used))]:
            del self._used[first]
            if self._has_items(first):
                self._used[first] = False

    def _has_items(self, party: PartyName) -> bool:
        return party in self._urgent or party in self._plain
