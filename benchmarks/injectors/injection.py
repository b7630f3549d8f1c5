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
    """One run of an injector. `sent` is exact: every message of it has been answered, or stands in `failed`."""

    sent: int
    failed: int
    accepts_per_second: float
    seconds: float
    cpu_seconds: float
    latency: Latency | None
