"""How much an account may have, do at once, and repeat: quotas, limits of costly work, rates of repetition."""

import contextlib
import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.delivery import fair_shares, throttle
from postroad.model.people import callers
from postroad.model.units import times
from postroad.storage.engine import store
from postroad.storage.mail import domains, received, suppressions, templates, webhooks
from postroad.storage.people import credentials, rates

# Nobody has to change these: far more than an account needs, and operators are not bound by them. The others are
# settings, in [quotas].
QUOTAS: Final[Mapping[str, int]] = {
    "credentials": 500,
    "api_keys": 1_000,
    "templates": 1_000,
    # Every event is sent to each of them.
    "webhooks": 10,
    "inbound_routes": 1_000,
    "suppressions": 1_000_000,
}
# What the quotas limit: one, and several.
QUOTA_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "domains": ("domain", "domains"),
    "credentials": ("SMTP credential", "SMTP credentials"),
    "api_keys": ("API key", "API keys"),
    "templates": ("template", "templates"),
    "webhooks": ("webhook", "webhooks"),
    "inbound_routes": ("inbound route", "inbound routes"),
    "users": ("user", "users"),
    "suppressions": ("suppressed address", "suppressed addresses"),
}
# What cannot be removed.
_REVOKED: Final = frozenset({"credentials", "api_keys"})
_COUNTS: Final[Mapping[str, Callable[[store.Transaction, str], Awaitable[int]]]] = {
    "domains": domains.count,
    "credentials": credentials.count,
    "api_keys": credentials.count_keys,
    "templates": templates.count,
    "webhooks": webhooks.count,
    "inbound_routes": received.count_routes,
}


async def check_quota(ctx: context.Context, tx: store.Transaction, account_id: str, kind: str) -> None:
    """Refuse one more object of a kind when the account has as many as its quota."""
    if _binds(ctx):
        refuse_beyond_quota(ctx, kind, await _COUNTS[kind](tx, account_id))


async def check_suppression_quota(ctx: context.Context, account_id: str) -> None:
    """The same for the suppression list, before the transaction that adds to it.

    A list may be long, and counting it under a lock would make others wait. So those that add at the same moment, and
    one import, may exceed the quota: by how much is bounded.
    """
    if _binds(ctx):
        async with ctx.store.scanning() as tx:
            refuse_beyond_quota(ctx, "suppressions", await suppressions.count(tx, account_id))


def refuse_beyond_quota(ctx: context.Context, kind: str, count: int) -> None:
    quota: int = QUOTAS[kind] if kind in QUOTAS else getattr(ctx.settings.quotas, kind)
    if _binds(ctx) and count >= quota:
        limited = f"{quota} {QUOTA_NAMES[kind][0 if quota == 1 else 1]}"
        verb = "revoke" if kind in _REVOKED else "remove"
        raise errors.Conflict(
            f"the quota of this account is {limited}; {verb} one that you do not need, or ask the operator"
        )


def _binds(ctx: context.Context) -> bool:
    return ctx.actor.kind in {callers.ActorKind.PERSON, callers.ActorKind.API_KEY}


# The rate at which an account may repeat work: retry and reschedule messages, and replay webhook deliveries.
#
# Exact: a bucket in the store for each account and kind, for all processes and hosts, read and written under the lock
# of the account in the transaction that repeats. So a request that is refused, for whatever reason, does not count.
# Operators are not bound.


# More than a person or a careful script needs; a queue of any size is retried with one bulk action.
REPEAT_RATE: Final = throttle.RateLimit(rate=5, burst=100)


class Repeat(StrEnum):
    RETRIES = "retries"
    RESCHEDULES = "reschedules"
    REPLAYS = "replays"


async def take_repeat(ctx: context.Context, tx: store.Transaction, account_id: str, kind: Repeat) -> None:
    """Count one request; the caller holds the lock of the account. Raises RateLimited beyond the rate."""
    if ctx.actor.kind is callers.ActorKind.OPERATOR:
        return
    name = f"{kind} {account_id}"
    stored = await rates.find(tx, [name])
    decision, bucket = throttle.take_shared(REPEAT_RATE, stored.get(name, throttle.SharedBucket()), now=ctx.clock())
    if not decision.allowed:
        raise errors.RateLimited(
            f"more than {REPEAT_RATE.rate} {kind} per second; wait for Retry-After seconds",
            retry_after=max(1, math.ceil(decision.wait / times.SECOND)),
        )
    await rates.put(tx, [rates.Rate(name, account_id, bucket)])


# Limits of costly work: how much of one kind may be in progress at once, per account and per process.
#
# What exceeds a limit is refused at once with a retry time, so that no account's work queues up behind another's. The
# slots of the process are shared fairly: however many accounts use all that one may have, something is left for the
# next. How many objects an account may have is another matter (`check_quota`).

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
