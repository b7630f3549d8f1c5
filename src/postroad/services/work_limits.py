"""Limits of costly work: how much of one kind may be in progress at once, per account and per process.

What exceeds a limit is refused at once with a retry time, so that no account's work queues up behind another's. The
slots of the process are shared fairly: however many accounts use all that one may have, something is left for the next.
How many objects an account may have is another matter (`account_quotas.py`).
"""

import contextlib
from collections.abc import Iterator
from typing import Final

import msgspec

from postroad import errors
from postroad.model import fair_shares
from postroad.services import context

# The limit of one account is far below half of the whole, so this bounds accounts only where many are busy.
ALPHA: Final = 1.0


class WorkLimit(msgspec.Struct, frozen=True):
    """A kind of work, its name in errors, its limits, and the retry time in seconds."""

    name: str
    per_account: int
    per_process: int
    retry_seconds: int


@contextlib.contextmanager
def acquire(ctx: context.Context, limit: WorkLimit, account_id: str) -> Iterator[None]:
    """Hold a slot for the duration of the block. Raises RateLimited when there is none."""
    shares = ctx.work_in_progress.get(limit.name) or fair_shares.FairShares(limit.per_process)
    party = fair_shares.Party(account_id, ALPHA)
    if shares.held(party) >= limit.per_account:
        raise errors.RateLimited(
            f"{limit.name}: at most {limit.per_account} at once per account; wait until one has finished",
            retry_after=limit.retry_seconds,
        )
    if not shares.take((party,)):
        raise errors.RateLimited(f"{limit.name}: too many in progress; try again soon", retry_after=limit.retry_seconds)
    ctx.work_in_progress[limit.name] = shares
    try:
        yield
    finally:
        shares.give_back((party,))
        if shares.free == limit.per_process:
            del ctx.work_in_progress[limit.name]
