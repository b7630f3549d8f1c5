"""Ways of sharing connections. Those that were not chosen are here to be compared with."""

import collections
import typing

from benchmarks.fairness import simulator
from postroad.delivery import permits
from postroad.model.delivery import fair_shares
from postroad.model.events import webhook_schedule


class HalfForUnproven:
    """What delivery did before: first come, first served; destinations that never answered share half."""

    def __init__(self, units: int) -> None:
        self._free, self._free_unproven = units, max(1, units // 2)
        self._line: collections.deque[simulator.Job] = collections.deque()
        self._unproven: collections.deque[simulator.Job] = collections.deque()
        self._counted: set[simulator.Job] = set()

    def ask(self, job: simulator.Job) -> None:
        """Queue the job; one for an unproven destination first waits for its half."""
        (self._line if job.destination.is_proven else self._unproven).append(job)
        self._admit()

    def _admit(self) -> None:
        while self._unproven and self._free_unproven:
            self._free_unproven -= 1
            job = self._unproven.popleft()
            self._counted.add(job)
            self._line.append(job)

    def choose(self, now: float) -> simulator.Job | None:  # noqa: ARG002 - all policies have one form
        """The first in the queue."""
        if not self._free or not self._line:
            return None
        self._free -= 1
        return self._line.popleft()

    def on_slow(self, job: simulator.Job) -> None:
        """This policy ignores it."""

    def end(self, job: simulator.Job, now: float) -> None:  # noqa: ARG002
        """Free."""
        self._free += 1
        if job in self._counted:
            self._counted.discard(job)
            self._free_unproven += 1
            self._admit()


class _ByAccount:
    """Jobs that wait, by account."""

    def __init__(self) -> None:
        self.waiting: dict[str, collections.deque[simulator.Job]] = {}

    def ask(self, job: simulator.Job) -> None:
        """Wait with others of the account."""
        self.waiting.setdefault(job.account, collections.deque()).append(job)

    def pop(self, account: str) -> simulator.Job:
        """The account's first."""
        jobs = self.waiting[account]
        job = jobs.popleft()
        if not jobs:
            del self.waiting[account]
        return job


class WebhookBudget(_ByAccount):
    """What webhooks do: accounts are quick, new or slow; new and slow ones share half, slow ones a quarter."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self._budget = webhook_schedule.ConcurrencyBudget(slots=units, per_account=units)
        self._slots: dict[simulator.Job, webhook_schedule.Slot] = {}
        self._marked_at = 0.0

    def choose(self, now: float) -> simulator.Job | None:
        """By priority."""
        if now - self._marked_at >= webhook_schedule.RESPONSIVE_SECONDS:
            self._marked_at = now
            self._budget.mark_slow(now=now)
        if not self.waiting or not self._budget.free:
            return None
        for account in self._budget.by_priority(self.waiting):
            if (slot := self._budget.take(account, now=now)) is not None:
                job = self.pop(account)
                self._slots[job] = slot
                return job
        return None

    def on_slow(self, job: simulator.Job) -> None:
        """This policy looks at durations itself."""

    def end(self, job: simulator.Job, now: float) -> None:
        """The duration decides the account's kind."""
        self._budget.end(self._slots.pop(job), now=now)


class ConnectionSeconds(_ByAccount):
    """Fair queuing: the account comes first that has used the fewest connection-seconds, those under way included."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self._free = units
        self._used: dict[str, float] = collections.defaultdict(float)
        self._running: dict[str, tuple[int, float]] = {}  # how many, and the sum of their beginnings

    def _seconds(self, account: str, now: float) -> float:
        count, begun = self._running.get(account, (0, 0.0))
        return self._used[account] + count * now - begun

    def _change(self, account: str, change: int, began: float) -> None:
        count, begun = self._running.get(account, (0, 0.0))
        self._running[account] = (count + change, begun + change * began)

    def choose(self, now: float) -> simulator.Job | None:
        """The account with the least."""
        if not self.waiting or not self._free:
            return None
        self._free -= 1
        job = self.pop(min(self.waiting, key=lambda account: self._seconds(account, now)))
        self._change(job.account, 1, now)
        return job

    def on_slow(self, job: simulator.Job) -> None:
        """Its seconds count as they pass."""

    def end(self, job: simulator.Job, now: float) -> None:
        """Remember its seconds."""
        self._free += 1
        self._change(job.account, -1, job.began)
        self._used[job.account] += now - job.began


Parties = typing.Callable[..., tuple[fair_shares.Party, ...]]


class Thresholds:
    """Dynamic thresholds. The parties of a connection make the difference: of accounts alone, or of slow ones too."""

    def __init__(self, units: int, parties: Parties = permits.parties, *, counts_all_slow: bool = False) -> None:
        self._shares = fair_shares.FairShares(units)
        self._waiting: fair_shares.FairQueue[simulator.Job] = fair_shares.FairQueue(self._shares)
        self._parties = parties
        self._counts_all_slow = counts_all_slow
        self._held: dict[simulator.Job, tuple[fair_shares.Party, ...]] = {}

    def ask(self, job: simulator.Job) -> None:
        """Wait with those of the account that are alike."""
        self._held[job] = parties = self._parties(job.account, is_responsive=job.destination.is_responsive)
        self._waiting.push(parties, job)

    def choose(self, now: float) -> simulator.Job | None:  # noqa: ARG002
        """Whoever may and holds least."""
        parties = self._waiting.first()
        return None if parties is None else self._waiting.pop(parties)

    def on_slow(self, job: simulator.Job) -> None:
        """The connection counts as slow from now on."""
        more = self._parties(job.account, is_responsive=False)[1 : 3 if self._counts_all_slow else 2]
        for party in more:
            if party not in self._held[job]:
                self._held[job] = (*self._held[job], party)
                self._shares.count(party, 1)

    def end(self, job: simulator.Job, now: float) -> None:  # noqa: ARG002
        """Free."""
        self._shares.give_back(self._held.pop(job))


def accounts_alone(account: str, *, is_responsive: bool) -> tuple[fair_shares.Party, ...]:  # noqa: ARG001
    """Slow ones are not told from others."""
    return (fair_shares.Party(account),)


def without_all_slow(account: str, *, is_responsive: bool) -> tuple[fair_shares.Party, ...]:
    """The slow ones of all accounts have no limit together."""
    return permits.parties(account, is_responsive=is_responsive)[:2]


ALL: typing.Mapping[str, typing.Callable[[int], simulator.Policy]] = {
    "half for unproven": HalfForUnproven,
    "webhook budget": WebhookBudget,
    "connection-seconds": ConnectionSeconds,
    "thresholds: account": lambda units: Thresholds(units, accounts_alone),
    "thresholds: account, slow": lambda units: Thresholds(units, without_all_slow),
    "thresholds: account, slow, all slow": lambda units: Thresholds(units, counts_all_slow=True),
    "thresholds: account, slow, all not quick": Thresholds,
}
