"""Accounts: create, find, rename, suspend and resume. A suspended account can read, but not send.

Names are unique, whatever their case. Accounts of older versions may share one; they keep it until they are renamed.

An account that resumes after a suspension by the bounce guard starts with a clean slate: earlier counts are dropped, so
that the next bounce does not suspend it again. After an operator's suspension the counts stay.
"""

import dataclasses
from typing import Literal

from postroad import errors
from postroad.model import bounce_guard, events, identifiers, labels, times
from postroad.services import audit_log, context
from postroad.services.results import bounce_guard as account_guard
from postroad.services.webhooks import outbox
from postroad.storage import access_version, accounts, bounce_guard_days, store

# A sentence for users; it is part of the error that a sender sees.
# Per sweep, each in its own transaction. The rest follows with the next sweep.
MAX_RESUMED = 1_000
# `off`: no bounce guard, and nothing is counted.
State = Literal["ok", "warned", "suspended", "off"]


@dataclasses.dataclass(frozen=True, slots=True)
class Sending:
    """The bounce guard's counts of the last days, its thresholds, and the account's state."""

    state: State
    days: int
    recipients: int
    bounces: int
    bounce_percent: float
    complaints: int
    complaint_percent: float
    min_recipients: int
    warn_percent: float
    suspend_percent: float
    complaint_warn_percent: float
    complaint_suspend_percent: float


async def create(ctx: context.Context, name: str) -> accounts.Account:
    """Create an account, active and without credits."""
    labels.check("name", name)
    now = ctx.clock()
    account_id = ctx.new_id(identifiers.ACCOUNT, now=now)
    async with ctx.store.transaction() as tx:
        await _refuse_taken_name(tx, name)
        await accounts.insert(tx, account_id, name=name, now=now)
        await audit_log.write(ctx, tx, account_id, "account.created", name)
    return accounts.Account(account_id, name, accounts.ACTIVE, None, available=0, reserved=0, created_at=now)


async def find(ctx: context.Context, account_id: str) -> accounts.Account:
    """One account."""
    if not identifiers.is_identifier(account_id, identifiers.ACCOUNT):
        raise not_found()
    async with ctx.store.reading() as tx:
        account = await accounts.by_id(tx, account_id)
    if account is None or account.removed_at is not None:
        raise not_found()
    return account


async def by_name(ctx: context.Context, name: str, *, limit: int) -> list[accounts.Account]:
    """The accounts with this name, of which older versions allowed several."""
    async with ctx.store.scanning() as tx:
        return await accounts.by_name(tx, name, limit=limit)


async def page(ctx: context.Context, after: str, limit: int) -> list[accounts.Account]:
    """A page of accounts, oldest first, after an id; the first page is after an empty text."""
    async with ctx.store.scanning() as tx:
        return await accounts.page(tx, after=after, limit=limit)


async def rename(ctx: context.Context, account_id: str, name: str) -> accounts.Account:
    """Give an account another name."""
    labels.check("name", name)
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        await _refuse_taken_name(tx, name, besides=account_id)
        await accounts.rename(tx, account_id, name)
        await audit_log.write(ctx, tx, account_id, "account.renamed", account.name, f"now {name}")
    return dataclasses.replace(account, name=name)


async def suspend(ctx: context.Context, account_id: str, reason: str) -> accounts.Account:
    """Stop an account from sending, at once and on every host. If it is suspended already, the reason is replaced."""
    labels.check("reason", reason, limit=labels.REASON_CHARACTERS)
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        _refuse_closed(account)
        await accounts.suspend(tx, account_id, reason=reason, by=accounts.OPERATOR, now=now)
        await audit_log.write(ctx, tx, account_id, "account.suspended", account.name, reason)
        if account.status != accounts.SUSPENDED:
            data = events.SuspendedAccountData(suspended_by=accounts.OPERATOR, reason=reason)
            kind = events.EventType.ACCOUNT_SUSPENDED
            await ctx.outbox.write_account(tx, [outbox.AccountEvent(account_id, kind, now, data)])
    ctx.access_cache.invalidate()
    return dataclasses.replace(
        account,
        status=accounts.SUSPENDED,
        suspended_reason=reason,
        suspended_by=accounts.OPERATOR,
        suspended_at=now,
    )


async def resume(ctx: context.Context, account_id: str) -> accounts.Account:
    """Allow an account to send again."""
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        _refuse_closed(account)
        await _resume(tx, account)
        if account.status == accounts.SUSPENDED:
            await audit_log.write(ctx, tx, account_id, "account.resumed", account.name)
    ctx.access_cache.invalidate()
    return dataclasses.replace(
        account, status=accounts.ACTIVE, suspended_reason=None, suspended_by=None, suspended_at=None
    )


async def require_second_factor(ctx: context.Context, account_id: str, *, required: bool) -> accounts.Account:
    """Require a second factor for the users of an account, from their next request, or stop requiring it."""
    async with ctx.store.transaction() as tx:
        await access_version.bump(tx)
        account = await lock(tx, account_id)
        if required == (account.second_factor_since is not None):
            return account
        since = ctx.clock() if required else None
        await accounts.require_second_factor(tx, account_id, since=since)
        action = "account.second_factor_required" if required else "account.second_factor_optional"
        await audit_log.write(ctx, tx, account_id, action, account.name)
    ctx.access_cache.invalidate()
    return dataclasses.replace(account, second_factor_since=since)


async def cool_down(ctx: context.Context) -> list[str]:
    """Resume accounts whose suspension by the bounce guard has lasted long enough. Operators' suspensions stay."""
    hours = ctx.settings.bounce_guard.cooldown_hours
    if not hours:
        return []
    until = ctx.clock() - hours * times.HOUR
    async with ctx.store.reading() as tx:
        found = await accounts.cooled(tx, suspended_until=until, limit=MAX_RESUMED)
    return [account_id for account_id in found if await _cool(ctx, account_id, until)]


async def _cool(ctx: context.Context, account_id: str, until: int) -> bool:
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        # It may have been changed since: the time is that of the last suspension.
        is_due = (
            account.suspended_by == accounts.BOUNCE_GUARD
            and (account.suspended_at or 0) <= until
            and account.closed_at is None
        )
        if is_due:
            await _resume(tx, account)
            await audit_log.write(ctx, tx, account_id, "account.resumed", account.name, "the cool-down is over")
    ctx.access_cache.invalidate()
    return is_due


async def _resume(tx: store.Transaction, account: accounts.Account) -> None:
    await accounts.resume(tx, account.id)
    if account.suspended_by == accounts.BOUNCE_GUARD:
        await bounce_guard_days.forget(tx, account.id)


def suspended_until(ctx: context.Context, account: accounts.Account) -> int | None:
    """When the cool-down resumes an account; None if it is active, or suspended until an operator resumes it."""
    hours = ctx.settings.bounce_guard.cooldown_hours
    if account.suspended_by != accounts.BOUNCE_GUARD or account.suspended_at is None or not hours:
        return None
    return account.suspended_at + hours * times.HOUR


async def sending(ctx: context.Context, account: accounts.Account) -> Sending:
    """The account's state with the bounce guard."""
    settings = ctx.settings.bounce_guard
    after_day = times.day_of(ctx.clock()) - settings.days
    async with ctx.store.reading() as tx:
        found = await bounce_guard_days.sums(tx, [account.id], after_day=after_day)
    counts = found.get(account.id, bounce_guard.Counts())
    return Sending(
        state=_state(account, counts, account_guard.rules_of(settings)),
        days=settings.days,
        recipients=counts.recipients,
        bounces=counts.bounces,
        bounce_percent=bounce_guard.percent(counts.bounces, counts.recipients),
        complaints=counts.complaints,
        complaint_percent=bounce_guard.percent(counts.complaints, counts.recipients),
        min_recipients=settings.recipients,
        warn_percent=settings.warn_percent,
        suspend_percent=settings.suspend_percent,
        complaint_warn_percent=settings.complaint_warn_percent,
        complaint_suspend_percent=settings.complaint_suspend_percent,
    )


def _state(account: accounts.Account, counts: bounce_guard.Counts, guard: bounce_guard.Rules | None) -> State:
    if account.suspended_by == accounts.BOUNCE_GUARD:
        return "suspended"
    if guard is None:
        return "off"
    # A rate can get worse as days pass; only the next result suspends.
    return "ok" if bounce_guard.assess(counts, guard).level is bounce_guard.Level.OK else "warned"


def not_found() -> errors.NotFound:
    """The error for an unknown account id."""
    return errors.NotFound("the account does not exist")


async def lock(tx: store.Transaction, account_id: str) -> accounts.Account:
    """An account, locked for a change of its state."""
    if not identifiers.is_identifier(account_id, identifiers.ACCOUNT):
        raise not_found()
    await access_version.bump(tx)
    account = (await accounts.lock(tx, [account_id])).get(account_id)
    if account is None or account.removed_at is not None:
        raise not_found()
    return account


def _refuse_closed(account: accounts.Account) -> None:
    if account.closed_at is not None:
        raise errors.Conflict(f"account {account.name!r} is closed; open it again with 'postroad account reopen'")


async def _refuse_taken_name(tx: store.Transaction, name: str, *, besides: str = "") -> None:
    """Refuse a name that another account has. The lock makes creators and renamers take turns."""
    await access_version.bump(tx)
    # One of two is another account.
    if any(account.id != besides for account in await accounts.by_name(tx, name, limit=2)):
        raise errors.Conflict(f"name: another account is named {name!r}, in this or another case; choose another name")
