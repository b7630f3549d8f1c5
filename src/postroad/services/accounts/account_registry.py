"""Accounts: create, find, rename, limit, suspend and resume, close and remove."""

import functools
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Literal

import msgspec

from postroad import context, errors
from postroad.mail.results import guard_counts
from postroad.model.bounces import bounce_guard
from postroad.model.events import events
from postroad.model.people import callers
from postroad.model.units import identifiers, labels, times
from postroad.services import audit_log, throttled_batches
from postroad.storage.engine import store
from postroad.storage.mail import mail_counts, webhooks
from postroad.storage.operations import retention
from postroad.storage.people import accounts, credentials, users

# Per sweep, each in its own transaction. The rest follows with the next sweep.
MAX_RESUMED = 1_000
# `off`: no bounce guard, and nothing is counted.
State = Literal["ok", "warned", "suspended", "off"]


class Sending(msgspec.Struct, frozen=True):
    """The bounce guard's counts for the last days, and the account's state."""

    state: Annotated[
        State,
        msgspec.Meta(
            description="`warned`: a warning threshold is reached. `suspended`: the guard has suspended the account. "
            "`off`: this installation has no bounce guard, and nothing is counted."
        ),
    ]
    days: Annotated[int, msgspec.Meta(description="Number of UTC days counted, today included.")]
    recipients: Annotated[int, msgspec.Meta(description="Recipients of these days that were attempted and are final.")]
    bounces: Annotated[int, msgspec.Meta(description="Recipients among them whose address does not exist.")]
    bounce_percent: Annotated[float, msgspec.Meta(description="`bounces` as a percentage of `recipients`.")]
    complaints: Annotated[int, msgspec.Meta(description="Complaints reported by mailbox providers.")]
    complaint_percent: Annotated[float, msgspec.Meta(description="`complaints` as a percentage of `recipients`.")]
    min_recipients: Annotated[
        int, msgspec.Meta(description="With fewer recipients than this, the guard neither warns nor suspends.")
    ]
    warn_percent: Annotated[float, msgspec.Meta(description="The account is warned at this `bounce_percent`.")]
    suspend_percent: Annotated[float, msgspec.Meta(description="The account is suspended at this `bounce_percent`.")]
    complaint_warn_percent: Annotated[
        float, msgspec.Meta(description="The account is warned at this `complaint_percent`.")
    ]
    complaint_suspend_percent: Annotated[
        float,
        msgspec.Meta(description="The account is suspended at this `complaint_percent`, with at least two complaints."),
    ]


async def create(ctx: context.Context, name: str) -> accounts.Account:
    """Create an account, active and without credits."""
    labels.check_label("name", name)
    now = ctx.clock()
    account_id = ctx.new_id(identifiers.ACCOUNT, now=now)
    async with ctx.store.transaction() as tx:
        await _refuse_taken_name(tx, name)
        await accounts.insert(tx, account_id, name=name, now=now)
        await audit_log.write(ctx, tx, account_id, "account.created", name)
    return accounts.Account(account_id, name, accounts.ACTIVE, None, available=0, reserved=0, created_at=now)


async def find(ctx: context.Context, account_id: str) -> accounts.Account:
    if not identifiers.is_identifier(account_id, identifiers.ACCOUNT):
        raise not_found()
    async with ctx.store.reading() as tx:
        account = await accounts.by_id(tx, account_id)
    if account is None or account.removed_at is not None:
        raise not_found()
    return account


async def by_name(ctx: context.Context, name: str) -> accounts.Account | None:
    """The account of this name, in this or another case."""
    async with ctx.store.reading() as tx:
        return await accounts.by_name(tx, name)


async def page(ctx: context.Context, after: str, limit: int) -> list[accounts.Account]:
    """A page of accounts, oldest first, after an id; the first page is after an empty text."""
    async with ctx.store.scanning() as tx:
        return await accounts.page(tx, after=after, limit=limit)


async def rename(ctx: context.Context, account_id: str, name: str) -> accounts.Account:
    labels.check_label("name", name)
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        await _refuse_taken_name(tx, name, besides=account_id)
        await accounts.rename(tx, account_id, name)
        await audit_log.write(ctx, tx, account_id, "account.renamed", account.name, f"now {name}")
    return msgspec.structs.replace(account, name=name)


async def suspend(ctx: context.Context, account_id: str, reason: str) -> accounts.Account:
    """Stop an account from sending, at once and on every host. If it is suspended already, the reason is replaced."""
    labels.check_label("reason", reason, limit=labels.REASON_CHARACTERS)
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        _refuse_closed(account)
        await accounts.suspend(tx, account_id, reason=reason, by=accounts.OPERATOR, now=now)
        await audit_log.write(ctx, tx, account_id, "account.suspended", account.name, reason)
        if account.status != accounts.SUSPENDED:
            data = events.SuspendedAccountData(suspended_by=accounts.OPERATOR, reason=reason)
            kind = events.EventType.ACCOUNT_SUSPENDED
            await ctx.outbox.write_account(tx, [events.AccountEvent(account_id, kind, now, data)])
    ctx.access_cache.invalidate()
    return msgspec.structs.replace(
        account,
        status=accounts.SUSPENDED,
        suspended_reason=reason,
        suspended_by=accounts.OPERATOR,
        suspended_at=now,
    )


async def resume(ctx: context.Context, account_id: str) -> accounts.Account:
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        _refuse_closed(account)
        await _resume(tx, account)
        if account.status == accounts.SUSPENDED:
            await audit_log.write(ctx, tx, account_id, "account.resumed", account.name)
    ctx.access_cache.invalidate()
    return msgspec.structs.replace(
        account, status=accounts.ACTIVE, suspended_reason=None, suspended_by=None, suspended_at=None
    )


async def require_second_factor(ctx: context.Context, account_id: str, *, required: bool) -> accounts.Account:
    """Require a second factor for the users of an account, from their next request, or stop requiring it."""
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        account = await lock(tx, account_id)
        if required == (account.second_factor_since is not None):
            return account
        since = ctx.clock() if required else None
        await accounts.require_second_factor(tx, account_id, since=since)
        action = "account.second_factor_required" if required else "account.second_factor_optional"
        await audit_log.write(ctx, tx, account_id, action, account.name)
    ctx.access_cache.invalidate()
    return msgspec.structs.replace(account, second_factor_since=since)


async def cool_down(ctx: context.Context) -> list[str]:
    """Resume accounts whose suspension by the bounce guard has lasted long enough. Operators' suspensions stay."""
    hours = ctx.settings.bounce_guard.cooldown_hours
    if not hours:
        return []
    until = ctx.clock() - hours * times.HOUR
    async with ctx.store.reading() as tx:
        found = await accounts.cooled_down(tx, suspended_until=until, limit=MAX_RESUMED)
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
        await mail_counts.forget_guard_days(tx, account.id)


def suspended_until(ctx: context.Context, account: accounts.Account) -> int | None:
    """When the cool-down resumes an account; None if it is active, or suspended until an operator resumes it."""
    hours = ctx.settings.bounce_guard.cooldown_hours
    if account.suspended_by != accounts.BOUNCE_GUARD or account.suspended_at is None or not hours:
        return None
    return account.suspended_at + hours * times.HOUR


async def sending(ctx: context.Context, account: accounts.Account) -> Sending:
    settings = ctx.settings.bounce_guard
    after_day = times.day_of(ctx.clock()) - settings.days
    async with ctx.store.reading() as tx:
        found = await mail_counts.guard_sums(tx, [account.id], after_day=after_day)
    counts = found.get(account.id, bounce_guard.Counts())
    return Sending(
        state=_state(account, counts, guard_counts.rules_of(settings)),
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
    return errors.NotFound("the account does not exist")


async def lock(tx: store.Transaction, account_id: str) -> accounts.Account:
    if not identifiers.is_identifier(account_id, identifiers.ACCOUNT):
        raise not_found()
    await credentials.bump_access_version(tx)
    account = (await accounts.lock(tx, [account_id])).get(account_id)
    if account is None or account.removed_at is not None:
        raise not_found()
    return account


def _refuse_closed(account: accounts.Account) -> None:
    if account.closed_at is not None:
        raise errors.Conflict(f"account {account.name!r} is closed; open it again with 'postroad account reopen'")


async def _refuse_taken_name(tx: store.Transaction, name: str, *, besides: str = "") -> None:
    """Refuse a name that another account has or may have as its id. The lock makes creators and renamers take turns."""
    if identifiers.is_identifier(name.strip(), identifiers.ACCOUNT):
        raise errors.InvalidRequest("name: looks like the id of an account; choose another name")
    await credentials.bump_access_version(tx)
    account = await accounts.by_name(tx, name)
    if account is not None and account.id != besides:
        raise errors.Conflict(f"name: another account is named {name!r}, in this or another case; choose another name")


# The limits of an account that an operator sets: sends per second, and recipients per day.
#
# None means the setting `limits.request_rate`, and no daily limit. A change applies to the next message, on every host.

# Far more than any installation accepts.
MAX_RATE: Final = 1_000_000
MAX_RECIPIENTS: Final = 1_000_000_000


async def change_limits(
    ctx: context.Context, account_id: str, *, request_rate: int | None, recipients_per_day: int | None
) -> accounts.Account:
    _check_limits("request_rate", request_rate, limit=MAX_RATE)
    _check_limits("recipients_per_day", recipients_per_day, limit=MAX_RECIPIENTS)
    async with ctx.store.transaction() as tx:
        before = await lock(tx, account_id)
        after = msgspec.structs.replace(before, request_rate=request_rate, recipients_per_day=recipients_per_day)
        if after != before:
            await accounts.set_limits(tx, account_id, request_rate=request_rate, recipients_per_day=recipients_per_day)
            await audit_log.write(ctx, tx, account_id, "account.limits_changed", before.name, limits_text(after))
    ctx.access_cache.invalidate()
    return after


def limits_text(account: accounts.Account) -> str:
    rate, daily = account.request_rate, account.recipients_per_day
    rate_text = "the default rate" if rate is None else f"{rate:,} sends per second"
    return f"{rate_text} and {'no daily limit' if daily is None else f'{daily:,} recipients per day'}"


def _check_limits(member: str, amount: int | None, *, limit: int) -> None:
    if amount is not None and not 1 <= amount <= limit:
        raise errors.InvalidRequest(f"{member}: must be from 1 to {limit}")


# Close an account, open it again, or remove it with everything that it has.
#
# Nobody logs in to a closed account, and nothing is accepted from it. Mail that was accepted before is delivered, and
# its webhooks are sent: it was promised. Whoever wants it gone cancels it first (`postroad queue cancel`). All data of
# a closed account is kept, so it can be opened again.
#
# Removal is for closed accounts without queued mail. The account is marked in one transaction and does not exist for
# anybody from then on; its data is deleted in small ones, and its row last. A removal that was interrupted is continued
# by the next maintenance sweep.

# Part of the error that a sender sees: "the account is suspended: it is closed".
CLOSED_REASON: Final = "it is closed"
# Of one sweep, so that other work is not kept waiting: a few million rows. The rest follows with the next one.
MAX_REMOVAL_BATCHES: Final = 5_000
# Interrupted removals are rare.
MAX_REMOVALS: Final = 100


async def close(ctx: context.Context, account_id: str) -> accounts.Account:
    """Close an account, at once and on every host. One operator who can log in stays."""
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        if account.closed_at is not None:
            return account
        await _keep_an_operator(ctx, tx, account_id)
        await accounts.close(tx, account_id, reason=CLOSED_REASON, now=now)
        await audit_log.write(ctx, tx, account_id, "account.closed", account.name)
    ctx.access_cache.invalidate()
    return msgspec.structs.replace(account, status=accounts.SUSPENDED, suspended_reason=CLOSED_REASON, closed_at=now)


async def _keep_an_operator(ctx: context.Context, tx: store.Transaction, account_id: str) -> None:
    # At the command line, the account can be opened again at once.
    if ctx.actor is callers.OPERATOR:
        return
    if all(operator.account_id != account_id for operator in await users.operators(tx)):
        return
    if all(user.account_id == account_id for user in await users.operators_who_can_log_in(tx)):
        raise errors.Conflict(
            "no operator could log in any more: make a user of another account an operator first, "
            "or use 'postroad account close'"
        )


async def reopen(ctx: context.Context, account_id: str) -> accounts.Account:
    """Open a closed account again; it is active then, whatever it was before it was closed."""
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        if account.closed_at is None:
            raise errors.Conflict(f"account {account.name!r} is not closed")
        await accounts.reopen(tx, account_id)
        await audit_log.write(ctx, tx, account_id, "account.reopened", account.name)
    ctx.access_cache.invalidate()
    return msgspec.structs.replace(account, status=accounts.ACTIVE, suspended_reason=None, closed_at=None)


async def remove(ctx: context.Context, account_id: str) -> accounts.Account:
    """Remove a closed account and delete its data; returns the account as it was."""
    async with ctx.store.transaction() as tx:
        account = await lock(tx, account_id)
        if account.closed_at is None:
            raise errors.Conflict(
                f"account {account.name!r} is not closed; close it first with 'postroad account close'"
            )
        if await retention.has_queue(tx, account_id):
            raise errors.Conflict(
                f"account {account.name!r} has queued mail; wait until it is delivered, or cancel it with "
                f"'postroad queue cancel --account {account_id}'"
            )
        await retention.mark_removed(tx, account_id, now=ctx.clock())
        await audit_log.write(ctx, tx, audit_log.INSTALLATION, "account.removed", account.name, account_id)
    ctx.access_cache.invalidate()
    while not await _delete_some(ctx, account_id):
        pass  # each call deletes a bounded number of rows, and nobody adds any
    return account


async def continue_removals(ctx: context.Context) -> int:
    """Delete the data of accounts whose removal was interrupted; returns how many are gone."""
    async with ctx.store.reading() as tx:
        marked = await retention.marked_removed(tx, limit=MAX_REMOVALS)
    return sum([await _delete_some(ctx, account_id) for account_id in marked])


async def _delete_some(ctx: context.Context, account_id: str) -> bool:
    """Delete up to MAX_BATCHES batches of an account; whether nothing is left."""
    # The order keeps the database consistent after every transaction: what belongs to a row goes with it or before it.
    steps: list[Callable[[store.Transaction], Awaitable[int]]] = [
        functools.partial(_delete_webhook_log, account_id),
        functools.partial(retention.delete_account_rows, "idempotency_keys", account_id),
        lambda tx: retention.remove_account_messages(tx, account_id),
        lambda tx: retention.remove_account_received_bodies(tx, account_id),
        *(functools.partial(retention.delete_account_rows, table, account_id) for table in retention.ACCOUNT_TABLES),
    ]
    left = MAX_REMOVAL_BATCHES
    for step in steps:
        while await throttled_batches.run_batch(ctx, step):
            left -= 1
            if not left:
                return False
    async with ctx.store.transaction() as tx:
        await credentials.bump_access_version(tx)
        await retention.delete_account(tx, account_id)
    return True


async def _delete_webhook_log(account_id: str, tx: store.Transaction) -> int:
    for webhook_id in await retention.webhooks_of_account(tx, account_id):
        removed = await webhooks.sweep_removed(tx, account_id, webhook_id)
        if removed:
            return removed
        await webhooks.forget(tx, webhook_id)
    return 0
