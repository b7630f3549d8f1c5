"""What an account may send: from which domains, requests by second, recipients by day, and the limits of an API key.

Domains, and whether mail costs credits, are kept in the access cache, so a send needs no query for them.
"""

import dataclasses
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from postroad import context, errors
from postroad.mail.accept import validation
from postroad.model.delivery import throttle
from postroad.model.domains import warmup
from postroad.model.events import events
from postroad.model.people import callers
from postroad.model.units import times
from postroad.storage.engine import store
from postroad.storage.mail import domains, mail_counts, messages
from postroad.storage.people import accounts

# Full buckets carry no information and are dropped when this many are kept.
MAX_BUCKETS: Final = 100_000
_RETRY: Final = "wait for Retry-After seconds, then retry with the same key"


class Exceeded(errors.RateLimited):
    """A rate limit error. One of the store knows when the bucket is full again, by this host's clock."""

    def __init__(self, message: str, *, retry_after: int, full_at: int | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.full_at = full_at

    @property
    def item_message(self) -> str:
        """The message for an item of a batch that was accepted: its response has no `Retry-After`, its key is used."""
        advice = f"send it again in another batch, with a new key, after {self.retry_after} s"
        return self.message.replace(_RETRY, advice)


def rate_exceeded(
    policy: throttle.RateLimit, decision: throttle.RateDecision, *, full_at: int | None = None
) -> Exceeded:
    msg = f"more than {policy.rate} sends per second from this account; {_RETRY}"
    return Exceeded(msg, retry_after=max(1, math.ceil(decision.wait / times.SECOND)), full_at=full_at)


Refuse = Callable[[throttle.RateLimit, throttle.RateDecision], errors.RateLimited]


class RateLimiter:
    """The buckets of this process."""

    def __init__(self, policy: throttle.RateLimit, *, refuse: Refuse = rate_exceeded) -> None:
        self.policy = policy
        self._refuse = refuse
        self._full_at: dict[str, int] = {}

    def take(self, name: str, *, now: int, rate: int | None = None) -> int:
        """Count one request; returns how many are left. Raises RateLimited beyond the limit, or `rate` in its place."""
        policy = self.policy if rate is None else throttle.at_rate(self.policy, rate)
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
        self._full_at[name] -= count * throttle.at_rate(self.policy, rate).interval

    def refusal(self, name: str, *, now: int, rate: int | None = None) -> errors.RateLimited:
        """The error of one more request; nothing is counted."""
        policy = throttle.at_rate(self.policy, rate)
        return self._refuse(policy, throttle.take(policy, full_at=self._full_at.get(name, 0), now=now))

    def learn(self, name: str, full_at: int | None) -> None:
        """Adopt the database's state of a bucket, which includes all processes; None if it is not known."""
        if full_at is not None:
            self._full_at[name] = full_at

    def headers(self, name: str, *, now: int, rate: int | None = None) -> tuple[tuple[str, str], ...]:
        """The `RateLimit` fields (draft-ietf-httpapi-ratelimit-headers); none for an unused bucket."""
        if name not in self._full_at:
            return ()
        policy = self.policy if rate is None else throttle.at_rate(self.policy, rate)
        ahead = min(max(0, self._full_at[name] - now), policy.window)
        remaining = (policy.window - ahead) // policy.interval
        window = math.ceil(policy.window / times.SECOND)
        return (
            ("RateLimit-Policy", f'"account";q={policy.burst};w={window}'),
            ("RateLimit", f'"account";r={remaining};t={math.ceil(ahead / times.SECOND)}'),
        )


async def recipients_today(tx: store.Transaction, locked: Iterable[accounts.Account], *, now: int) -> dict[str, int]:
    """What the accounts with a limit have sent on the UTC day of a time: what their hourly counts say.

    The accepting transaction writes them under the account's lock, so the limit is exact on any number of hosts.
    """
    hour = mail_counts.hour_of(times.day_of(now) * times.DAY)
    found = {}
    for account in locked:
        if account.recipients_per_day is not None:
            _, recipients, *_ = await mail_counts.hourly_since(tx, account.id, from_hour=hour)
            found[account.id] = recipients or 0
    return found


def check_daily_limit(
    message: messages.NewMessage, locked: Mapping[str, accounts.Account], today: Mapping[str, int]
) -> errors.PostroadError | None:
    """Why a message exceeds the limit of its account; None when it does not, or there is none."""
    used = None if message.is_test else today.get(message.account_id)
    if used is None:
        return None
    return daily_refusal("this account", message, used=used, limit=locked[message.account_id].recipients_per_day)


def daily_refusal(
    owner: str, message: messages.NewMessage, *, used: int, limit: int | None, day: int | None = None
) -> errors.PostroadError | None:
    count = message.recipient_count
    if limit is None or used + count <= limit:
        return None
    if count > limit:
        return errors.Forbidden(
            f"the message has {count} recipients, but {owner} may send to {limit} per day; send to fewer"
        )
    next_day = (times.day_of(message.created_at) if day is None else day) + 1
    seconds = math.ceil((next_day * times.DAY - message.created_at) / times.SECOND)
    return errors.RateLimited(
        f"{owner} has sent to {used} of its {limit} recipients per day, and this message has {count}; the next day "
        "begins at 00:00 UTC",
        retry_after=max(1, seconds),
    )


def check_key_content(limits: callers.KeyLimits, checked: validation.CheckedMessage) -> None:
    """Refuse a sender domain or a template that an API key may not use, before the accepting transaction."""
    if limits.domains and checked.sender.domain not in limits.domains:
        raise errors.Forbidden(
            f"from: this API key may not send from {checked.sender.domain}, only from {', '.join(limits.domains)}"
        )
    template = checked.template if isinstance(checked, validation.CheckedSend) else None
    if limits.templates and template not in limits.templates:
        raise errors.Forbidden(f"template: this API key may only send the templates {', '.join(limits.templates)}")


def credits_text(count: int) -> str:
    return f"{count} credit{'' if count == 1 else 's'}"


async def write_low_credits(
    tx: store.Transaction,
    account: accounts.Account,
    sent: Sequence[messages.NewMessage],
    *,
    left: int,
    outbox: context.Outbox,
) -> None:
    """Write the event if credits were not low before this mail and are now."""
    now = max(message.created_at for message in sent)
    since = await mail_counts.hourly_since(
        tx, account.id, from_hour=mail_counts.hour_of(now) - accounts.LOW_CREDIT_HOURS
    )
    used = since[1] or 0
    used_before = used - sum(message.recipient_count for message in sent)
    if left < used and account.available >= used_before:
        data = events.CreditsData(available=left, used=used)
        event = events.AccountEvent(account.id, events.EventType.CREDITS_LOW, now, data)
        await outbox.write_account(tx, [event])


def key_refusal(budget: callers.KeyBudget | None, message: messages.NewMessage) -> errors.PostroadError | None:
    """Why a message exceeds the recipients per day or the credits of its API key, under the account's lock."""
    if budget is None:
        return errors.Unauthorized("Authorization: the API key no longer exists")
    usage = callers.usage_on_day(budget.usage, now=message.created_at)
    over = daily_refusal("this API key", message, used=usage.recipients, limit=budget.recipients_per_day, day=usage.day)
    if over is not None:
        return over
    if budget.credit_budget is not None and usage.credits + message.credits_reserved > budget.credit_budget:
        return errors.InsufficientCredits(
            f"the message needs {credits_text(message.credits_reserved)}, but this API key has used "
            f"{usage.credits} of its budget of {budget.credit_budget}; raise the budget, or use another key"
        )
    return None


def count_for_key(budget: callers.KeyBudget, message: messages.NewMessage) -> callers.KeyBudget:
    usage = callers.usage_on_day(budget.usage, now=message.created_at)
    used = callers.use_key(usage, recipients=message.recipient_count, credits=message.credits_reserved)
    return msgspec.structs.replace(budget, usage=used)


async def sending_domain(ctx: context.Context, account_id: str, name: str) -> domains.Domain:
    """A domain of the account, unless it is not verified and has to be."""
    facts = await ctx.access_cache.refresh(ctx.clock())
    known: domains.Domain | None = facts.get(("domain", account_id, name))
    domain = known or await _look_up_domain(ctx, facts, account_id, name)
    if domain.verified_at is None and ctx.settings.domains.require_verified:
        raise errors.Forbidden(f"from: {name} is not verified yet; publish its DKIM record, then check the domain")
    return domain


async def _look_up_domain(
    ctx: context.Context, facts: dict[Hashable, Any], account_id: str, name: str
) -> domains.Domain:
    async with ctx.store.looking_up() as tx:
        domain = await domains.by_name(tx, account_id, name)
        owner = await domains.verified_owner(tx, name)
        # A domain that has completed its warm-up counts as warm, and its mail skips the check.
        is_warm = domain is not None and (
            bool(domain.warm)
            or not ctx.settings.warmup.enabled
            or warmup.cap(await warmup_state(ctx, tx, domain), ctx.settings.warmup.recipients_per_day) is None
        )
    if domain is None:
        raise errors.Forbidden(f"from: {name} is not a domain of this account; add the domain first")
    if owner not in (None, account_id):
        raise errors.Forbidden(f"from: {name} is verified by another account; it cannot be used here")
    facts["domain", account_id, name] = domain = dataclasses.replace(domain, warm=int(is_warm))
    return domain


async def warmup_state(ctx: context.Context, tx: store.Transaction, domain: domains.Domain) -> warmup.State:
    key = (domain.account_id, domain.name)
    stored = (await domains.warmups(tx, [key])).get(key)
    return warmup.at(stored, now=ctx.clock(), caps=ctx.settings.warmup.recipients_per_day)


async def is_charged(ctx: context.Context, account_id: str) -> bool:
    if not ctx.settings.credits.enabled:  # nothing to look up
        return False
    facts = await ctx.access_cache.refresh(ctx.clock())
    charged: bool | None = facts.get(("charged", account_id))
    if charged is None:
        async with ctx.store.looking_up() as tx:
            account = await accounts.by_id(tx, account_id)
        facts["charged", account_id] = charged = account is None or not account.unlimited
    return charged
