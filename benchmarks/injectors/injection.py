"""What an injector reports: how much it sent, how it was answered, how long that took, and what it cost itself."""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Milliseconds from the request to its answer."""

    p50: float
    p99: float
    worst: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """One run of an injector. `sent` is exact: every message of it has been answered, or stands in `failed`.

    Without `cpu_seconds` there was none: the work lay in the store before.
    """

    sent: int
    failed: int
    accepts_per_second: float
    seconds: float
    cpu_seconds: float | None
    latency: Latency | None


@dataclasses.dataclass(slots=True)
class Sending:
    """An injector that works beside us; `result` is there when it has ended."""

    result: Injection | None = None

    def ended(self) -> Injection:
        """What it did. It must have ended."""
        assert self.result is not None
        return self.result
