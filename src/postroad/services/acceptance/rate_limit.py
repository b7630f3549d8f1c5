"""Rate limits: one token bucket per account, shared by all its credentials and API keys, and by its test mail.

The authoritative buckets are in the database (services/acceptance/transaction.py): one for all processes and hosts, and
not refilled by a restart. The buckets of a process are a first filter, so that a flood costs the database little, and
supply the `RateLimit` headers. Each answer of the database corrects them.
"""

import math
from collections.abc import Callable, Container, Mapping
from typing import Final

from postroad import errors
from postroad.model import throttle, times
from postroad.storage import rates, store

# Full buckets carry no information and are dropped when this many are kept.
MAX_BUCKETS: Final = 100_000
_RETRY: Final = "wait for Retry-After seconds, then retry with the same key"


class Exceeded(errors.RateLimited):
    """A rate limit error that knows when the bucket is full again, by this host's clock."""

    def __init__(self, message: str, *, retry_after: int, full_at: int) -> None:
        super().__init__(message, retry_after=retry_after)
        self.full_at = full_at

    @property
    def item_message(self) -> str:
        """The message for an item of a batch that was accepted: its response has no `Retry-After`, its key is used."""
        advice = f"send it again in another batch, with a new key, after {self.retry_after} s"
        return self.message.replace(_RETRY, advice)


def refusal(policy: throttle.RateLimit, decision: throttle.RateDecision) -> Exceeded:
    """The error for a request over the limit."""
    msg = f"more than {policy.rate} sends per second from this account; {_RETRY}"
    return Exceeded(msg, retry_after=max(1, math.ceil(decision.wait / times.SECOND)), full_at=decision.full_at)


Refuse = Callable[[throttle.RateLimit, throttle.RateDecision], errors.RateLimited]


class RateLimiter:
    """The buckets of this process."""

    def __init__(self, policy: throttle.RateLimit, *, refuse: Refuse = refusal) -> None:
        self.policy = policy
        self._refuse = refuse
        self._full_at: dict[str, int] = {}

    def take(self, name: str, *, now: int, rate: int | None = None) -> int:
        """Count one request; returns how many are left. Raises RateLimited beyond the limit, or `rate` in its place."""
        policy = throttle.at_rate(self.policy, rate)
        decision = throttle.take(policy, full_at=self._full_at.get(name, 0), now=now)
        if len(self._full_at) >= MAX_BUCKETS:
            self._full_at = {name: full_at for name, full_at in self._full_at.items() if full_at > now}
        self._full_at[name] = decision.full_at
        if not decision.allowed:
            raise self._refuse(policy, decision)
        return decision.remaining

    def take_up_to(self, count: int, name: str, *, now: int, rate: int | None = None) -> int:
        """Count up to so many requests; returns how many are within the limit. Raises RateLimited if none is."""
        more = min(count - 1, self.take(name, now=now, rate=rate))
        self._full_at[name] += more * throttle.at_rate(self.policy, rate).interval
        return 1 + more

    def give_back(self, count: int, name: str, *, rate: int | None = None) -> None:
        """So many requests count no longer: they were refused for their rate."""
        self._full_at[name] -= count * throttle.at_rate(self.policy, rate).interval

    def refusal(self, name: str, *, now: int, rate: int | None = None) -> errors.RateLimited:
        """The error of one more request; nothing is counted."""
        policy = throttle.at_rate(self.policy, rate)
        return self._refuse(policy, throttle.take(policy, full_at=self._full_at.get(name, 0), now=now))

    def learn(self, name: str, full_at: int) -> None:
        """Adopt the database's state of a bucket, which includes all processes."""
        self._full_at[name] = full_at

    def headers(self, name: str, *, now: int, rate: int | None = None) -> tuple[tuple[str, str], ...]:
        """The `RateLimit` fields (draft-ietf-httpapi-ratelimit-headers); none for an unused bucket."""
        if name not in self._full_at:
            return ()
        policy = throttle.at_rate(self.policy, rate)
        ahead = min(max(0, self._full_at[name] - now), policy.window)
        remaining = (policy.window - ahead) // policy.interval
        window = math.ceil(policy.window / times.SECOND)
        return (
            ("RateLimit-Policy", f'"account";q={policy.burst};w={window}'),
            ("RateLimit", f'"account";r={remaining};t={math.ceil(ahead / times.SECOND)}'),
        )


def take_shared(
    buckets: dict[str, throttle.SharedBucket],
    account_id: str,
    policy: throttle.RateLimit,
    *,
    now: int,
    clock: int,
) -> Exceeded | None:
    """Take a request from the stored bucket of its account; returns the error if there is nothing left."""
    bucket = buckets.get(account_id, throttle.SharedBucket())
    decision, buckets[account_id] = throttle.take_shared(policy, bucket, now=now, clock=clock)
    return None if decision.allowed else refusal(policy, decision)


async def write(
    tx: store.Transaction,
    accounts: Container[str],
    *,
    before: Mapping[str, throttle.SharedBucket],
    after: Mapping[str, throttle.SharedBucket],
) -> None:
    """Store the buckets of accounts that changed: a request over the limit takes nothing."""
    changed = [
        rates.Rate(account_id, account_id, bucket)
        for account_id, bucket in after.items()
        if account_id in accounts and bucket.full_at != before.get(account_id, throttle.SharedBucket()).full_at
    ]
    await rates.put(tx, changed)
