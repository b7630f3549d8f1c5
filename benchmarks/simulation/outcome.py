"""What a simulated day has shown: plain values, which are stored as JSON, so that a page shows days of several runs."""

import msgspec

from benchmarks.simulation import measurements, scenario


class Kind(msgspec.Struct, frozen=True):
    """Mail to one kind of destination."""

    waits: measurements.Waits
    attempts: int
    deferred: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A day. The same scenario and seed give the same outcome."""

    day: scenario.Scenario
    seed: int
    violations: tuple[str, ...]
    fairness: float | None
    worst_prompt: float | None  # the part of its mail that was prompt, of the account with the least
    accepted: int
    queued: int  # at the end
    duplicates: int
    ended: dict[str, int]
    refused: dict[str, int]
    kinds: dict[str, Kind]
    by_size: dict[str, measurements.Waits]  # of accounts
    senders: dict[str, measurements.Waits]  # that send a lot at a time
    samples: tuple[measurements.Sample, ...]
    suspended: dict[str, float]  # when, in seconds of the day
    ended_at: float

    @property
    def attempts(self) -> int:
        """How many there were."""
        return sum(kind.attempts for kind in self.kinds.values())

    @property
    def deferred(self) -> int:
        """Those that have to be repeated."""
        return sum(kind.deferred for kind in self.kinds.values())

    @property
    def max_queued(self) -> int:
        """The longest queue."""
        return max((sum(sample.queued.values()) for sample in self.samples), default=0)

    @property
    def max_connections(self) -> int:
        """The most connections."""
        return max((sum(sample.connections.values()) for sample in self.samples), default=0)

    def recovery_seconds(self, outage: scenario.Outage) -> float | None:
        """How long after an outage the queue for its destinations is back to its length before it."""
        queued = [(sample.at, sample.queued.get(outage.kind, 0)) for sample in self.samples]
        before = max((count for at, count in queued if at <= outage.begins), default=0)
        end = outage.begins + outage.seconds
        return next((at - end for at, count in queued if at >= end and count <= before), None)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A day as it was run."""

    outcome: Outcome
    cpu_seconds: float
    mebibytes: int
    facts: dict[str, str]
