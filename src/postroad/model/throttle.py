"""The token bucket, as the generic cell rate algorithm (GCRA): one number per bucket, exact, no timers.

The number is the theoretical arrival time: when the bucket would be full again. A request moves it by one interval;
it is refused when that would put it further ahead than the burst allows. All times are microseconds.
"""

from dataclasses import dataclass, field

from postroad.model import times


@dataclass(frozen=True, slots=True)
class Policy:
    """So many requests a second in the long run, so many at once."""

    rate: int
    burst: int
    # Microseconds that one request is worth, and in which an empty bucket fills.
    interval: int = field(init=False)
    window: int = field(init=False)

    def __post_init__(self) -> None:
        # A rate beyond one a microsecond is no limit in practice.
        object.__setattr__(self, "interval", max(1, times.SECOND // self.rate))
        object.__setattr__(self, "window", self.interval * self.burst)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one request: `full_at` is the bucket's new state, to be kept whether allowed or not."""

    allowed: bool
    full_at: int
    remaining: int
    wait: int


def take(policy: Policy, *, full_at: int, now: int) -> Verdict:
    """One request against a bucket that would be full at `full_at`.

    No bucket needs longer than its window. One that seems to was kept while the clock was set back: it is empty, no
    more, and does not refuse everybody until the clock is where it was.
    """
    full_at = min(full_at, now + policy.window)
    start = max(full_at, now)
    after = start + policy.interval
    room = policy.window - (after - now)
    if room < 0:
        return Verdict(allowed=False, full_at=full_at, remaining=0, wait=-room)
    return Verdict(allowed=True, full_at=after, remaining=room // policy.interval, wait=0)
