"""Cleanup: expired rows are deleted in bounded batches, so that mail never waits for it long."""

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from postroad import context
from postroad.mail.accept import approval_limit, queue_limit
from postroad.model.bounces import bounce_guard
from postroad.model.delivery import retry, throttle
from postroad.model.reports import dmarc_rows
from postroad.model.units import identifiers, times
from postroad.services import request_log, throttled_batches
from postroad.services.accounts import account_registry
from postroad.services.operations import key_replacement, partitions
from postroad.services.webhooks import delivery_log
from postroad.storage.engine import store
from postroad.storage.mail import delivery_controls, mail_counts, received_reports, tls_policies, webhooks
from postroad.storage.mail import messages as stored_messages
from postroad.storage.mail import received as stored_received
from postroad.storage.operations import notices, processes, retention, space
from postroad.storage.people import approvals
from postroad.storage.people import audit_log as storage_audit_log
from postroad.storage.people import rates as stored_rates
from postroad.storage.people import request_log as storage_request_log
from postroad.storage.people import sessions as stored_sessions

# Retention: how long mail is kept after its final result, and the removal of older mail.
#
# The content of a message is removed first, the message with its recipients and attempts later; test mail, which costs
# nothing, is removed at once and sooner. Mail that is not final and the ledger are never removed. The work is done in
# small transactions with pauses between them (`throttled_batches.py`). What one sweep does not reach follows with the
# next one.

# Each: twice for bodies, then for messages, test mail and received mail. With MAX_SHRINK_SECONDS, a sweep takes up to
# 27 seconds.
MAX_SECONDS: Final = 5.0
MAX_SHRINK_SECONDS: Final = 2.0


class Remove(Protocol):
    """Removes a batch of mail that ended between two times, and returns how many messages those are."""

    def __call__(self, tx: store.Transaction, /, *, ended_before: int, ended_after: int) -> Awaitable[int]: ...


class RemovalResult(msgspec.Struct, frozen=True):
    """How many messages were affected, and whether more may be left."""

    count: int
    has_more: bool


async def remove_bodies(ctx: context.Context, *, now: int) -> RemovalResult:
    ended = await partitions.window(ctx, partitions.content(ctx.settings), now=now)
    done = await _remove(ctx, retention.remove_bodies, ended)
    if done.has_more:
        return done
    # A message is removed after its content, which is not marked as removed if it was dropped with its partition.
    ended = await partitions.window(ctx, partitions.mail(ctx.settings), now=now)
    marked = await _remove(ctx, retention.remove_bodies, ended)
    return RemovalResult(done.count + marked.count, has_more=marked.has_more)


async def remove_messages(ctx: context.Context, *, now: int) -> RemovalResult:
    """Remove expired messages with everything that belongs to them."""
    ended = await partitions.window(ctx, partitions.mail(ctx.settings), now=now)
    return await _remove(ctx, retention.remove_messages, ended)


async def remove_test_mail(ctx: context.Context, *, now: int) -> RemovalResult:
    """Remove expired test messages with their content. Their partition, if they have one, stays much longer."""
    before = now - queue_limit.TEST_MAIL_DAYS * times.DAY
    return await _remove_in_batches(
        ctx, lambda tx: retention.remove_test_messages(tx, ended_before=before), seconds=MAX_SECONDS
    )


async def remove_received(ctx: context.Context, *, now: int) -> RemovalResult:
    """Remove the content of received mail, and the rest of it later, by the ages at which sent mail is removed."""
    days = ctx.settings.retention
    return await _remove_in_batches(
        ctx,
        lambda tx: _remove_received(
            tx, bodies=now - days.body_days * times.DAY, rows=now - days.message_days * times.DAY
        ),
        seconds=MAX_SECONDS,
    )


async def _remove_received(tx: store.Transaction, *, bodies: int, rows: int) -> int:
    return await retention.remove_received_bodies(tx, before=bodies) or await retention.remove_received(tx, before=rows)


async def _remove(ctx: context.Context, remove: Remove, ended: partitions.Window) -> RemovalResult:
    work = functools.partial(remove, ended_before=ended.ended_before, ended_after=ended.ended_after)
    return await _remove_in_batches(ctx, work, seconds=MAX_SECONDS)


async def return_space(ctx: context.Context) -> RemovalResult:
    """Return the space of what was removed to the file system; the count is that of steps."""
    return await _remove_in_batches(ctx, space.shrink, seconds=MAX_SHRINK_SECONDS)


async def _remove_in_batches(
    ctx: context.Context, work: Callable[[store.Transaction], Awaitable[int]], *, seconds: float
) -> RemovalResult:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    total = 0
    while loop.time() < end:
        removed = await throttled_batches.run_batch(ctx, work)
        if removed == 0:
            return RemovalResult(total, has_more=False)
        total += removed
    return RemovalResult(total, has_more=True)


# A bound for one sweep: ten million rows. The rest follows with the next one.
MAX_BATCHES: Final = 10_000
# Workers report their provider queues twice a minute; older reports are from workers that died.
PROVIDER_QUEUE_MICROSECONDS: Final = 10 * 60 * times.SECOND
# Charts show at most 92 days and as many before, today included.
HOURLY_COUNTS_HOURS: Final = 185 * 24
# Longer than any warm-up, which counts from its beginning.
SOURCE_COUNTS_DAYS: Final = 400
# A network without a login for this long is unknown again.
KNOWN_NETWORK_DAYS: Final = 90
# The report of yesterday is retried for a day; older ones belong to an installation that no longer reports.
TLS_REPORT_DAYS: Final = 3
# Quotas count the day; the one before it is for clocks that differ.
RECEIVED_COUNTS_DAYS: Final = 2
# What receivers report can be compared with the same season of the year before.
RECEIVED_REPORT_DAYS: Final = 400
# Longer than the longest interval between two notices about the same subject.
NOTICE_DAYS: Final = 31
# Sends that a person decided about, or did not, can be looked up for a month.
APPROVAL_DAYS: Final = 30
# Removed endpoints per sweep: each takes one transaction or more.
MAX_REMOVED_ENDPOINTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class SweepResult:
    idempotency_keys: int
    sessions: int
    provider_queues: int
    holds: int
    webhook_deliveries: int
    webhook_secrets: int
    rates: int
    bounce_guard_days: int = 0
    hourly_counts: int = 0
    failure_counts: int = 0
    source_counts: int = 0
    audit_log: int = 0
    request_log: int = 0
    password_links: int = 0
    pending_logins: int = 0
    mta_sts_policies: int = 0
    login_failures: int = 0
    known_networks: int = 0
    tls_reports: int = 0
    received_reports: int = 0
    notices: int = 0
    notice_mails: int = 0
    approvals: int = 0
    approval_bodies: int = 0
    previous_keys: int = 0
    accounts: int = 0
    bodies: int = 0
    messages: int = 0
    received: int = 0
    received_counts: int = 0
    # Old mail or free space is left that this sweep had no time for.
    has_more: bool = False
    resumed: tuple[str, ...] = ()


async def sweep(ctx: context.Context) -> SweepResult:
    """Delete everything that has expired, and resume accounts whose suspension has ended."""
    now = ctx.clock()
    today, days = times.day_of(now), ctx.settings.bounce_guard.days
    async with ctx.store.transaction() as tx:
        forgotten = await processes.sweep_queues(tx, before=now - PROVIDER_QUEUE_MICROSECONDS)
        released = now - retry.lifetime(ctx.settings.delivery.retry_seconds)
        removed_holds = await delivery_controls.sweep_holds(tx, released_before=released)
        await delivery_controls.sweep_source_states(tx, before=now)
        secrets = await webhooks.sweep_secrets(tx, now=now)
        keys = await key_replacement.forget_expired(tx, now=now)
    swept = SweepResult(
        resumed=tuple(await account_registry.cool_down(ctx)),
        idempotency_keys=await _in_batches(ctx, lambda tx: stored_messages.sweep_idempotency_keys(tx, now=now)),
        sessions=await _in_batches(ctx, lambda tx: stored_sessions.sweep(tx, now=now)),
        provider_queues=forgotten,
        holds=removed_holds,
        webhook_deliveries=await _sweep_log(ctx, before=now - delivery_log.LOG_SECONDS * times.SECOND),
        webhook_secrets=secrets,
        previous_keys=keys,
        accounts=await account_registry.continue_removals(ctx),
        rates=await _in_batches(ctx, lambda tx: stored_rates.sweep(tx, before=now - throttle.MAX_CLOCK_SKEW)),
        bounce_guard_days=await _in_batches(
            ctx,
            lambda tx: mail_counts.sweep_guard_days(
                tx, until_day=today - days, reports_until_day=today - max(days, bounce_guard.SIGNATURE_DAYS)
            ),
        ),
        hourly_counts=await _in_batches(
            ctx, lambda tx: mail_counts.sweep_hourly(tx, until_hour=mail_counts.hour_of(now) - HOURLY_COUNTS_HOURS)
        ),
        failure_counts=await _in_batches(
            ctx, lambda tx: mail_counts.sweep_failures(tx, until_hour=mail_counts.hour_of(now) - HOURLY_COUNTS_HOURS)
        ),
        source_counts=await _in_batches(
            ctx, lambda tx: mail_counts.sweep_sources(tx, until_day=today - SOURCE_COUNTS_DAYS)
        ),
        audit_log=await _in_batches(
            ctx, lambda tx: storage_audit_log.sweep(tx, before=now - ctx.settings.dashboard.audit_log_days * times.DAY)
        ),
        request_log=await _in_batches(
            ctx, lambda tx: storage_request_log.sweep(tx, before=now - request_log.days(ctx) * times.DAY)
        ),
        password_links=await _in_batches(ctx, lambda tx: stored_sessions.sweep_links(tx, now=now)),
        pending_logins=await _in_batches(ctx, lambda tx: stored_sessions.sweep_pending(tx, now=now)),
        mta_sts_policies=await _in_batches(ctx, lambda tx: tls_policies.sweep_policies(tx, now=now)),
        login_failures=await _in_batches(ctx, lambda tx: stored_rates.sweep_failures(tx, now=now)),
        known_networks=await _in_batches(
            ctx, lambda tx: stored_rates.sweep_networks(tx, before=now - KNOWN_NETWORK_DAYS * times.DAY)
        ),
        approval_bodies=await _in_batches(
            ctx,
            lambda tx: approvals.sweep_bodies(tx, before=now - approval_limit.LIFETIME),
            rows=approvals.SWEEP_ROWS,
        ),
        approvals=await _in_batches(
            ctx, lambda tx: approvals.sweep(tx, before=now - APPROVAL_DAYS * times.DAY), rows=approvals.SWEEP_ROWS
        ),
        tls_reports=await _in_batches(
            ctx, lambda tx: tls_policies.sweep_reports(tx, until_day=today - TLS_REPORT_DAYS)
        ),
        received_counts=await _in_batches(
            ctx, lambda tx: stored_received.sweep_counts(tx, until_day=today - RECEIVED_COUNTS_DAYS)
        ),
        received_reports=await _in_batches(
            ctx,
            lambda tx: received_reports.sweep(
                # Nothing older is timely, so it need not be known as repeated.
                tx,
                arrivals_until_day=today - dmarc_rows.MAX_AGE_DAYS - dmarc_rows.MAX_DAYS_AHEAD - 1,
                rows_until_day=today - RECEIVED_REPORT_DAYS,
            ),
        ),
        notices=await _in_batches(ctx, lambda tx: notices.sweep(tx, before=now - NOTICE_DAYS * times.DAY)),
        notice_mails=await _in_batches(ctx, lambda tx: notices.sweep_mails(tx, before=now - NOTICE_DAYS * times.DAY)),
    )
    # The longest work comes last, after the idempotency keys that refer to messages. Bodies are deleted before their
    # messages.
    tests = await remove_test_mail(ctx, now=now)
    bodies = await remove_bodies(ctx, now=now)
    mail = await remove_messages(ctx, now=now)
    received = await remove_received(ctx, now=now)
    returned = await return_space(ctx)
    has_more = any(result.has_more for result in (tests, bodies, mail, received, returned))
    return dataclasses.replace(
        swept,
        bodies=bodies.count,
        messages=tests.count + mail.count,
        received=received.count,
        has_more=has_more,
    )


async def _sweep_log(ctx: context.Context, *, before: int) -> int:
    """Delete finished deliveries, deliveries that could not be made, and everything of removed endpoints.

    The schedule takes a day. What is left after a week belongs to a disabled endpoint, or to a backlog that its
    endpoint will never work off.
    """
    rows = webhooks.SWEEP_ROWS
    place = identifiers.at(identifiers.WEBHOOK_DELIVERY, before)
    ended = await _in_batches(ctx, lambda tx: webhooks.sweep(tx, ended_before=before), rows=rows)
    untold = await _in_batches(ctx, lambda tx: webhooks.sweep_undelivered(tx, created_before=place), rows=rows)
    async with ctx.store.reading() as tx:
        gone = await webhooks.removed(tx, limit=MAX_REMOVED_ENDPOINTS)
    removed = [await _in_batches(ctx, functools.partial(_sweep_removed, endpoint), rows=rows) for endpoint in gone]
    return ended + untold + sum(removed)


async def _sweep_removed(endpoint: webhooks.RemovedEndpoint, tx: store.Transaction) -> int:
    removed = await webhooks.sweep_removed(tx, endpoint.account_id, endpoint.id)
    if removed < webhooks.SWEEP_ROWS:
        await webhooks.forget(tx, endpoint.id)
    return removed


async def _in_batches(
    ctx: context.Context, work: Callable[[store.Transaction], Awaitable[int]], *, rows: int = store.SWEEP_ROWS
) -> int:
    """Run batches, each in its own transaction, so that others get the database in between."""
    total = 0
    for _ in range(MAX_BATCHES):
        async with ctx.store.transaction() as tx:
            removed = await work(tx)
        total += removed
        if removed < rows:
            break
    return total
