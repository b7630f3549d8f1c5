"""Delivery in virtual time: mail arrives, waits for its destination and for a connection, and is sent.

Destinations grow as the real ones do: two connections at first, one more for each success, half after a failure to
connect. Who gets a connection is the policy's business. Nothing is preempted, as in the service: a transaction whose
content was sent cannot be ended without the risk of a duplicate.
"""

import collections
import dataclasses
import heapq
import itertools
import random
import typing

from postroad.delivery import permits

FIRST_CONNECTIONS, MAX_CONNECTIONS = 2, 10
Behaviour = typing.Callable[["Destination", random.Random], float]


@dataclasses.dataclass(slots=True, eq=False)
class Destination:
    """A destination, what it does, and what is known of it."""

    behaviour: Behaviour
    is_proven: bool = False  # as `permits` had it: the last attempt reached a host
    is_responsive: bool = False  # the last thing known is a quick reply
    is_dead: bool = False
    begun: int = 0
    allowed: int = FIRST_CONNECTIONS
    connections: int = 0  # open, or asked for
    backlog: collections.deque["Job"] = dataclasses.field(default_factory=collections.deque)


@dataclasses.dataclass(slots=True, eq=False)
class Job:
    """A message to one destination. `kind` is what it is counted as."""

    account: str
    destination: Destination
    kind: str
    arrived: float
    began: float = 0.0
    is_slow: bool = False


class Policy(typing.Protocol):
    """Decides who gets a connection."""

    def ask(self, job: Job) -> None:
        """The destination has room; the job waits for a connection."""

    def choose(self, now: float) -> Job | None:
        """The next job to begin, which holds a connection from now on; None when none may begin."""

    def on_slow(self, job: Job) -> None:
        """A transaction has lasted for `permits.SLOW_SECONDS`."""

    def end(self, job: Job, now: float) -> None:
        """The connection is free."""


@dataclasses.dataclass(slots=True)
class Outcome:
    """What was seen: waits by kind, messages sent by kind, and the most connections at one time."""

    waits: dict[str, list[float]] = dataclasses.field(default_factory=lambda: collections.defaultdict(list))
    sent: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    busiest: int = 0

    def percentile(self, kind: str, part: float) -> float:
        """A percentile of the waits; what never began counts as infinite."""
        waits = sorted(self.waits[kind])
        return waits[min(len(waits) - 1, int(part * len(waits)))] if waits else float("nan")


class Simulation:
    """One run of a policy. Only what arrives from `measured_from` on is counted."""

    def __init__(self, policy: Policy, arrivals: typing.Iterable[Job], *, measured_from: float, seed: int) -> None:
        self._policy = policy
        self._measured_from = measured_from
        self._chance, self._order = random.Random(seed), itertools.count()
        self._events: list[tuple[float, int, str, Job]] = [
            (job.arrived, next(self._order), "arrive", job) for job in arrivals
        ]
        heapq.heapify(self._events)
        self._busy = 0
        self._unbegun: set[Job] = set()
        self._outcome = Outcome()

    def run(self, *, until: float) -> Outcome:
        """Simulate until the time."""
        steps = {"arrive": self._arrive, "slow": self._turn_slow, "end": self._end}
        while self._events and self._events[0][0] <= until:
            now, _, event, job = heapq.heappop(self._events)
            steps[event](job, now)
            while (chosen := self._policy.choose(now)) is not None:
                self._begin(chosen, now)
        for job in self._unbegun:
            self._outcome.waits[job.kind].append(float("inf"))
        return self._outcome

    def _arrive(self, job: Job, now: float) -> None:
        job.destination.backlog.append(job)
        if now >= self._measured_from:
            self._unbegun.add(job)
        self._ask(job.destination)

    def _ask(self, there: Destination) -> None:
        while there.backlog and there.connections < there.allowed:
            there.connections += 1
            self._policy.ask(there.backlog.popleft())

    def _begin(self, job: Job, now: float) -> None:
        there, job.began = job.destination, now
        self._busy += 1
        self._outcome.busiest = max(self._outcome.busiest, self._busy)
        if job in self._unbegun:
            self._unbegun.discard(job)
            self._outcome.waits[job.kind].append(now - job.arrived)
        seconds = there.behaviour(there, self._chance)
        there.begun += 1
        heapq.heappush(self._events, (now + seconds, next(self._order), "end", job))
        if seconds > permits.SLOW_SECONDS:
            heapq.heappush(self._events, (now + permits.SLOW_SECONDS, next(self._order), "slow", job))

    def _turn_slow(self, job: Job, _: float) -> None:
        job.is_slow, job.destination.is_responsive = True, False
        self._policy.on_slow(job)

    def _end(self, job: Job, now: float) -> None:
        there = job.destination
        self._busy -= 1
        there.connections -= 1
        there.is_proven = not there.is_dead
        there.is_responsive = not there.is_dead and not job.is_slow
        there.allowed = max(1, there.allowed // 2) if there.is_dead else min(MAX_CONNECTIONS, there.allowed + 1)
        if now >= self._measured_from:
            self._outcome.sent[job.kind] += 1
        self._policy.end(job, now)
        self._ask(there)
