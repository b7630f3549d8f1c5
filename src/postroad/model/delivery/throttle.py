"""The token bucket, as the generic cell rate algorithm (GCRA): one timestamp, or two, exact, no timers.

`full_at` is the theoretical arrival time: when the bucket would be full again. A request moves it by one interval;
it is refused when that would put it further ahead than the burst allows. All times are microseconds.

Hosts may share a bucket although their clocks differ. A shared bucket also keeps `seen_at`, the latest time that any
host has seen, which never goes back: a host that is behind counts from there. So clocks that differ by d let at most
d's worth of additional requests through, in a window of any length. That holds up to MAX_CLOCK_SKEW; a time further
ahead is ignored, so that a clock that was set back does not refuse valid requests for longer.
"""

from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad.model.units import times

# Synchronized clocks differ by milliseconds. A time further ahead came from a wrong clock.
MAX_CLOCK_SKEW: Final = 2 * times.SECOND


@dataclass(frozen=True, slots=True)
class RateLimit:
    """The long-term rate per second, and the burst."""

    rate: int
    burst: int
    # Microseconds per request, and to fill an empty bucket.
    interval: int = field(init=False)
    window: int = field(init=False)

    def __post_init__(self) -> None:
        # Rounded up, so that the rate is never exceeded.
        object.__setattr__(self, "interval", -(-times.SECOND // self.rate))
        object.__setattr__(self, "window", self.interval * self.burst)


def at_rate(policy: RateLimit, rate: int | None) -> RateLimit:
    """The limit with another rate, and a burst that lasts as long; None for the same."""
    return policy if rate is None else RateLimit(rate=rate, burst=-(-rate * policy.burst // policy.rate))


class RateDecision(msgspec.Struct, frozen=True):
    """The decision on one request: `full_at` is the bucket's new state, to be stored in either case."""

    allowed: bool
    full_at: int
    remaining: int
    wait: int


class SharedBucket(msgspec.Struct, frozen=True):
    """A bucket shared by several hosts: when it is full again, and the latest time that any host has seen."""

    full_at: int = 0
    seen_at: int = 0


def take(policy: RateLimit, *, full_at: int, now: int) -> RateDecision:
    """One request against a bucket that would be full at `full_at`.

    No bucket needs longer than its window. One that seems to was stored before the clock was set back: it counts as
    empty and does not refuse requests until the clock has caught up.
    """
    full_at = min(full_at, now + policy.window)
    start = max(full_at, now)
    after = start + policy.interval
    room = policy.window - (after - now)
    if room < 0:
        return RateDecision(allowed=False, full_at=full_at, remaining=0, wait=-room)
    return RateDecision(allowed=True, full_at=after, remaining=room // policy.interval, wait=0)


def take_shared(
    policy: RateLimit, bucket: SharedBucket, *, now: int, clock: int | None = None
) -> tuple[RateDecision, SharedBucket]:
    """The same against a shared bucket. The decision is in this host's time, the bucket in its own.

    A host that is behind also waits for the difference: perhaps no other host advances the bucket's time. A request
    that has waited since `now` gives the host's `clock`, so that those that overtook it do not seem to be ahead.
    """
    clock = now if clock is None else clock
    there = now if bucket.seen_at - clock > MAX_CLOCK_SKEW else max(now, bucket.seen_at)
    decision = take(policy, full_at=bucket.full_at, now=there)
    after = SharedBucket(full_at=decision.full_at, seen_at=there)
    if (ahead := there - clock) > 0:
        wait = 0 if decision.allowed else decision.wait + ahead
        decision = msgspec.structs.replace(decision, full_at=decision.full_at - ahead, wait=wait)
    return decision, after


def full_at(bucket: SharedBucket, *, now: int) -> int:
    """When a shared bucket is full again, in this host's time."""
    ahead = bucket.seen_at - now
    return bucket.full_at - ahead if 0 < ahead <= MAX_CLOCK_SKEW else bucket.full_at
