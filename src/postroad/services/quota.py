"""Quotas: how much costly work of one kind may be in progress, per account and per process.

What exceeds a quota is refused at once with a retry time, so that no account's work queues up behind another's. What
the process has is shared fairly: however many accounts use all that one may, something is left for the next.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from postroad import errors
from postroad.model import fair_shares
from postroad.services import context

# The limit of one account is far below half of the whole, so this bounds accounts only where many are busy.
ALPHA: Final = 1.0


@dataclass(frozen=True, slots=True)
class Quota:
    """A kind of work, its name in errors, its limits, and the retry time in seconds."""

    name: str
    per_account: int
    per_process: int
    retry_seconds: int


@contextlib.contextmanager
def acquire(ctx: context.Context, kind: Quota, account_id: str) -> Iterator[None]:
    """Hold a slot for the duration of the block. Raises RateLimited when there is none."""
    shares = ctx.quota_usage.get(kind.name) or fair_shares.FairShares(kind.per_process)
    party = fair_shares.Party(account_id, ALPHA)
    if shares.held(party) >= kind.per_account:
        raise errors.RateLimited(
            f"{kind.name}: at most {kind.per_account} at once per account; wait until one has finished",
            retry_after=kind.retry_seconds,
        )
    if not shares.take((party,)):
        raise errors.RateLimited(f"{kind.name}: too many in progress; try again soon", retry_after=kind.retry_seconds)
    ctx.quota_usage[kind.name] = shares
    try:
        yield
    finally:
        shares.give_back((party,))
        if shares.free == kind.per_process:
            del ctx.quota_usage[kind.name]
