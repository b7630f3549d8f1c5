"""When webhook deliveries are attempted: the retry schedule, and a budget in which no endpoint delays others."""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from postroad.model.delivery import retry
from postroad.model.units import times

# The concurrency budget of webhook deliveries: a slow or dead endpoint delays no other account.
#
# There is a fixed number of slots, and an attempt holds one. An account is new until one of its attempts has ended,
# quick when the last one ended within a second, and slow otherwise. Quick accounts may use all slots. New and slow ones
# share half, and slow ones at most a quarter: however many hang, half is left for those that respond, a quarter for new
# ones.
#
# An account begins with two slots. Each quick attempt adds one; a slow one halves its slots, down to four, so that a
# working but slow endpoint still gets its events. Times are seconds of a monotonic clock.

RESPONSIVE_SECONDS: Final = 1.0
INITIAL_SLOTS: Final = 2
# What slow attempts leave: with three seconds for each, 80 events a minute.
MIN_SLOTS: Final = 4
# Accounts in memory, about 200 bytes each. One that is dropped counts as new again.
MAX_ACCOUNTS: Final = 50_000


class Kind(IntEnum):
    """What is known of an account's endpoints. The slots of each kind are part of those of the kind before."""

    RESPONSIVE = 0
    NEW = 1
    SLOW = 2


class Slot(msgspec.Struct, eq=False):
    """The right to make one attempt; `since` is when it began, `number` counts the slots that its account has got."""

    account_id: str
    since: float
    number: int


class _AccountBudget(msgspec.Struct):
    """The slots of one account. `turn` orders accounts by when they last got one; `taken` counts all it has got."""

    limit: int
    kind: Kind = Kind.NEW
    turn: int = 0
    taken: int = 0


class ConcurrencyBudget:
    """Hands out slots. Every slot is returned, by `end` or by `release`."""

    def __init__(self, *, slots: int, per_account: int) -> None:
        # Slots left for each kind; negative when others have become slow.
        self._left = [slots, max(1, slots // 2), max(1, slots // 4)]
        self._per_account = per_account
        self._accounts: dict[str, _AccountBudget] = {}  # the last to get a slot is last
        self._busy: dict[str, set[Slot]] = {}
        self._turns = 0

    @property
    def free(self) -> int:
        """The free slots."""
        return self._left[0]

    def by_priority(self, account_ids: Iterable[str]) -> list[str]:
        """The accounts by priority: new ones first, then those that waited longest."""
        known = {account_id: self._share(account_id) for account_id in account_ids}
        return sorted(known, key=lambda account_id: (known[account_id].kind is not Kind.NEW, known[account_id].turn))

    def available(self, account_id: str) -> int:
        """How many slots the account could get now."""
        budget = self._share(account_id)
        return max(0, min(budget.limit - len(self._busy.get(account_id, ())), *self._left[: budget.kind + 1]))

    def take(self, account_id: str, *, now: float) -> Slot | None:
        """A slot, if the account can get one."""
        if not self.available(account_id):
            return None
        budget = self._remember(account_id)
        slot = Slot(account_id, now, budget.taken)
        self._turns += 1
        budget.turn, budget.taken = self._turns, budget.taken + 1
        self._busy.setdefault(account_id, set()).add(slot)
        self._count(budget.kind, 1)
        return slot

    def begin(self, slot: Slot, *, now: float) -> None:
        """The attempt begins; time before that does not count."""
        slot.since = now

    def end(self, slot: Slot, *, now: float) -> None:
        """The attempt has ended; its duration decides the account's kind."""
        self._leave(slot)
        budget, is_responsive = self._accounts[slot.account_id], now - slot.since < RESPONSIVE_SECONDS
        budget.limit = min(budget.limit + 1 if is_responsive else max(MIN_SLOTS, budget.limit // 2), self._per_account)
        self._set_kind(slot.account_id, Kind.RESPONSIVE if is_responsive else Kind.SLOW)

    def release(self, slots: Iterable[Slot]) -> None:
        """The slots were not needed."""
        for slot in slots:
            self._leave(slot)

    def mark_slow(self, *, now: float) -> None:
        """Find the accounts that have become slow, without waiting for their attempts to end."""
        for account_id, slots in self._busy.items():
            if any(now - slot.since >= RESPONSIVE_SECONDS for slot in slots):
                self._set_kind(account_id, Kind.SLOW)

    def _share(self, account_id: str) -> _AccountBudget:
        """The account's budget; a new one when it is unknown."""
        return self._accounts.get(account_id) or _AccountBudget(min(INITIAL_SLOTS, self._per_account))

    def _remember(self, account_id: str) -> _AccountBudget:
        budget = self._share(account_id)
        self._accounts.pop(account_id, None)
        self._accounts[account_id] = budget
        if len(self._accounts) > MAX_ACCOUNTS:
            idle = next((other for other in self._accounts if other not in self._busy and other != account_id), None)
            if idle is not None:
                del self._accounts[idle]
        return budget

    def _leave(self, slot: Slot) -> None:
        slots = self._busy[slot.account_id]
        slots.remove(slot)
        if not slots:
            del self._busy[slot.account_id]
        self._count(self._accounts[slot.account_id].kind, -1)

    def _set_kind(self, account_id: str, kind: Kind) -> None:
        """The kind applies to all slots of the account."""
        budget, held = self._accounts[account_id], len(self._busy.get(account_id, ()))
        self._count(budget.kind, -held)
        self._count(kind, held)
        budget.kind = kind

    def _count(self, kind: Kind, slots: int) -> None:
        for level in range(kind + 1):
            self._left[level] -= slots


# Shorter delays are exact: somebody may be watching, and so little jitter spreads nothing.
EXACT_BELOW_SECONDS: Final = 60


def attempts(schedule: Sequence[int]) -> int:
    """How many attempts there are in all."""
    return len(schedule) + 1


def delay(schedule: Sequence[int], made: int, *, random_fraction: float) -> int | None:
    """How long to wait after the last of `made` attempts; None when the schedule is over.

    `random_fraction` (0 to 1) adds up to a tenth to a delay.
    """
    if made < 1:
        raise ValueError("a delay follows an attempt, and none was made")
    if made >= attempts(schedule):
        return None
    seconds = schedule[made - 1]
    if seconds < EXACT_BELOW_SECONDS:
        return seconds * times.SECOND
    return round(retry.jittered(seconds, random_fraction) * times.SECOND)
