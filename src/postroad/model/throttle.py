"""The token bucket, as the generic cell rate algorithm (GCRA): one number per bucket, exact, no timers.

The number is the theoretical arrival time: when the bucket would be full again. A request moves it by one interval;
it is refused when that would put it further ahead than the burst allows. All times are microseconds.

Hosts may share a bucket, though no two clocks agree. A shared bucket keeps the latest time that any host has seen, and
its own time never runs back: a host that is behind counts from there. So it gets what is left like everybody else, and
clocks that are apart by d let at most d's worth of requests more through, in a window of any length. That holds while
they are apart by no more than MOST_CLOCK_DIFFERENCE; a time that is further ahead is not believed, so that a clock that
is set back does not refuse what is lawful for longer than that.
"""

from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad.model import times

# Clocks that are looked after differ by milliseconds. A time from further ahead was told by a clock that was wrong.
MAX_CLOCK_SKEW: Final = 2 * times.SECOND


@dataclass(frozen=True, slots=True)
class RateLimit:
    """So many requests a second in the long run, so many at once."""

    rate: int
    burst: int
    # Microseconds that one request is worth, and in which an empty bucket fills.
    interval: int = field(init=False)
    window: int = field(init=False)

    def __post_init__(self) -> None:
        # Rounded up, so that no rate is exceeded; one beyond a request a microsecond is no limit in practice.
        object.__setattr__(self, "interval", -(-times.SECOND // self.rate))
        object.__setattr__(self, "window", self.interval * self.burst)


class RateDecision(msgspec.Struct, frozen=True):
    """What became of one request: `full_at` is the bucket's new state, to be kept whether allowed or not."""

    allowed: bool
    full_at: int
    remaining: int
    wait: int


class SharedBucket(msgspec.Struct, frozen=True):
    """A bucket that several hosts share: when it is full again, and the latest time that one of them has seen."""

    full_at: int = 0
    seen_at: int = 0


def take(policy: RateLimit, *, full_at: int, now: int) -> RateDecision:
    """One request against a bucket that would be full at `full_at`.

    No bucket needs longer than its window. One that seems to was kept while the clock was set back: it is empty, no
    more, and does not refuse everybody until the clock is where it was.
    """
    full_at = min(full_at, now + policy.window)
    start = max(full_at, now)
    after = start + policy.interval
    room = policy.window - (after - now)
    if room < 0:
        return RateDecision(allowed=False, full_at=full_at, remaining=0, wait=-room)
    return RateDecision(allowed=True, full_at=after, remaining=room // policy.interval, wait=0)


def take_shared(policy: RateLimit, bucket: SharedBucket, *, now: int) -> tuple[RateDecision, SharedBucket]:
    """The same against a shared bucket. The verdict is in this host's time, the bucket in its own.

    Who is behind waits for that as well: perhaps no other host moves the bucket's time on.
    """
    there = _time_of(bucket, now=now)
    decision = take(policy, full_at=bucket.full_at, now=there)
    after = SharedBucket(full_at=decision.full_at, seen_at=there)
    if there != now:
        wait = 0 if decision.allowed else decision.wait + (there - now)
        decision = msgspec.structs.replace(decision, full_at=decision.full_at - (there - now), wait=wait)
    return decision, after


def full_at(bucket: SharedBucket, *, now: int) -> int:
    """When a shared bucket is full again, in this host's time."""
    return bucket.full_at - (_time_of(bucket, now=now) - now)


def _time_of(bucket: SharedBucket, *, now: int) -> int:
    return now if bucket.seen_at - now > MAX_CLOCK_SKEW else max(now, bucket.seen_at)
