"""Quotas: how much costly work of one kind may be in progress, per account and per process.

What exceeds a quota is refused at once with a retry time, so that no account's work queues up behind another's.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from postroad import errors
from postroad.services import context


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
    of_account, of_process = (kind.name, account_id), (kind.name, "")
    if ctx.quota_usage[of_account] >= kind.per_account:
        raise errors.RateLimited(
            f"{kind.name}: at most {kind.per_account} at once per account; wait until one has finished",
            retry_after=kind.retry_seconds,
        )
    if ctx.quota_usage[of_process] >= kind.per_process:
        raise errors.RateLimited(f"{kind.name}: too many in progress; try again soon", retry_after=kind.retry_seconds)
    ctx.quota_usage.update((of_account, of_process))
    try:
        yield
    finally:
        for taken_place in (of_account, of_process):
            ctx.quota_usage[taken_place] -= 1
            if not ctx.quota_usage[taken_place]:
                del ctx.quota_usage[taken_place]
