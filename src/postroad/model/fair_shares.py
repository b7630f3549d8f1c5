"""Fair shares of a limited resource, by the dynamic threshold of shared-buffer switches (Choudhury and Hahne, 1998).

A party may take another unit while it holds fewer than `alpha` times what is free. So a party that is alone gets
alpha / (1 + alpha) of everything, several that want more get equal parts, and something is always free for the next
one: nobody configures shares, and nobody can take them all. Who asks names every party that the unit counts for, such
as an account and a destination, and gets it when each of them may have it.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

# A party that is alone gets four fifths; of two, each gets four ninths.
ALPHA: Final = 4.0


@dataclass(frozen=True, slots=True)
class Party:
    """Somebody for whom units are counted."""

    name: Hashable
    alpha: float = ALPHA


class FairShares:
    """Who holds how much of a resource."""

    def __init__(self, units: int) -> None:
        self.free = units
        self._held: dict[Hashable, int] = {}

    def held(self, party: Party) -> int:
        """How much the party holds."""
        return self._held.get(party.name, 0)

    def has_share(self, party: Party) -> bool:
        """Whether the party may take another unit."""
        return self.held(party) < party.alpha * self.free

    def take(self, parties: Sequence[Party]) -> bool:
        """Take a unit that counts for all of the parties; False if one of them may not have it."""
        if not all(map(self.has_share, parties)):
            return False
        self.free -= 1
        for party in parties:
            self.count(party, 1)
        return True

    def give_back(self, parties: Sequence[Party]) -> None:
        """Return a unit."""
        self.free += 1
        for party in parties:
            self.count(party, -1)

    def count(self, party: Party, change: int) -> None:
        """Let a unit that is held already count for another party as well, or no longer."""
        held = self.held(party) + change
        if held:
            self._held[party.name] = held
        else:
            del self._held[party.name]
