"""The rate at which an account may repeat work: retry and reschedule messages, and replay webhook deliveries.

Exact: a bucket in the store for each account and kind, for all processes and hosts, read and written under the lock of
the account in the transaction that repeats. So a request that is refused, for whatever reason, does not count.
Operators are not bound.
"""

import math
from enum import StrEnum

from postroad import errors
from postroad.model import actors, throttle, times
from postroad.services import context
from postroad.storage import rates, store


class Kind(StrEnum):
    """What is repeated."""

    RETRIES = "retries"
    RESCHEDULES = "reschedules"
    REPLAYS = "replays"


async def take(ctx: context.Context, tx: store.Transaction, account_id: str, kind: Kind) -> None:
    """Count one request; the caller holds the lock of the account. Raises RateLimited beyond the rate."""
    if ctx.actor.kind is actors.Kind.OPERATOR:
        return
    limits = ctx.settings.limits
    policy = throttle.RateLimit(rate=limits.retry_rate, burst=limits.retry_burst)
    name = f"{kind} {account_id}"
    stored = await rates.find(tx, [name])
    decision, bucket = throttle.take_shared(policy, stored.get(name, throttle.SharedBucket()), now=ctx.clock())
    if not decision.allowed:
        raise errors.RateLimited(
            f"more than {policy.rate} {kind} per second; wait for Retry-After seconds",
            retry_after=max(1, math.ceil(decision.wait / times.SECOND)),
        )
    await rates.put(tx, [rates.Rate(name, account_id, bucket)])
