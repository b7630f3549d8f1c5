"""Cleanup: expired rows are deleted in bounded batches, so that mail never waits for it long."""

import dataclasses
import functools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from postroad.model import bounce_guard, cursors, identifiers, retry, throttle, times
from postroad.services import context
from postroad.services.accounts import closure
from postroad.services.accounts import registry as accounts
from postroad.services.approvals import approval_limit
from postroad.services.auth import key_replacement
from postroad.services.maintenance import retention
from postroad.services.webhooks import delivery_log
from postroad.storage import (
    approvals,
    failure_counts,
    holds,
    idempotency,
    known_networks,
    login_failures,
    mta_sts_policies,
    notices,
    password_links,
    pending_logins,
    provider_queues,
    rates,
    sessions,
    source_counts,
    source_states,
    store,
    tls_reports,
    webhook_deliveries,
    webhooks,
)
from postroad.storage import audit_log as storage_audit_log
from postroad.storage import bounce_guard_days as storage_bounce_guard_days
from postroad.storage import hourly_counts as storage_hourly_counts

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
# Longer than the longest interval between two notices about the same subject.
NOTICE_DAYS: Final = 31
# Sends that a person decided about, or did not, can be looked up for a month.
APPROVAL_DAYS: Final = 30
# Removed endpoints per sweep: each takes one transaction or more.
MAX_REMOVED_ENDPOINTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class SweepResult:
    """How many rows a sweep deleted, and the accounts that may send again."""

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
    password_links: int = 0
    pending_logins: int = 0
    mta_sts_policies: int = 0
    login_failures: int = 0
    known_networks: int = 0
    tls_reports: int = 0
    notices: int = 0
    notice_mails: int = 0
    approvals: int = 0
    approval_bodies: int = 0
    previous_keys: int = 0
    accounts: int = 0
    bodies: int = 0
    messages: int = 0
    # Old mail or free space is left that this sweep had no time for.
    has_more: bool = False
    resumed: tuple[str, ...] = ()


async def sweep(ctx: context.Context) -> SweepResult:
    """Delete everything that has expired, and resume accounts whose suspension has ended."""
    now = ctx.clock()
    async with ctx.store.transaction() as tx:
        forgotten = await provider_queues.sweep(tx, before=now - PROVIDER_QUEUE_MICROSECONDS)
        released = now - retry.lifetime(ctx.settings.delivery.retry_seconds)
        removed_holds = await holds.sweep(tx, released_before=released)
        await source_states.sweep(tx, before=now)
        secrets = await webhooks.sweep_secrets(tx, now=now)
        keys = await key_replacement.forget_expired(tx, now=now)
    swept = SweepResult(
        resumed=tuple(await accounts.cool_down(ctx)),
        idempotency_keys=await _in_batches(ctx, lambda tx: idempotency.sweep(tx, now=now), rows=idempotency.SWEEP_ROWS),
        sessions=await _in_batches(ctx, lambda tx: sessions.sweep(tx, now=now), rows=sessions.SWEEP_ROWS),
        provider_queues=forgotten,
        holds=removed_holds,
        webhook_deliveries=await _sweep_log(ctx, before=now - delivery_log.LOG_SECONDS * times.SECOND),
        webhook_secrets=secrets,
        previous_keys=keys,
        accounts=await closure.continue_removals(ctx),
        rates=await _in_batches(
            ctx, lambda tx: rates.sweep(tx, before=now - throttle.MAX_CLOCK_SKEW), rows=rates.SWEEP_ROWS
        ),
        bounce_guard_days=await _in_batches(
            ctx, functools.partial(_sweep_days, ctx), rows=storage_bounce_guard_days.SWEEP_ROWS
        ),
        hourly_counts=await _in_batches(
            ctx,
            lambda tx: storage_hourly_counts.sweep(
                tx, until_hour=storage_hourly_counts.hour_of(now) - HOURLY_COUNTS_HOURS
            ),
            rows=storage_hourly_counts.SWEEP_ROWS,
        ),
        failure_counts=await _in_batches(
            ctx,
            lambda tx: failure_counts.sweep(tx, until_hour=storage_hourly_counts.hour_of(now) - HOURLY_COUNTS_HOURS),
            rows=failure_counts.SWEEP_ROWS,
        ),
        source_counts=await _in_batches(
            ctx,
            lambda tx: source_counts.sweep(tx, until_day=times.day_of(now) - SOURCE_COUNTS_DAYS),
            rows=source_counts.SWEEP_ROWS,
        ),
        audit_log=await _in_batches(
            ctx,
            lambda tx: storage_audit_log.sweep(tx, before=now - ctx.settings.dashboard.audit_log_days * times.DAY),
            rows=storage_audit_log.SWEEP_ROWS,
        ),
        password_links=await _in_batches(
            ctx, lambda tx: password_links.sweep(tx, now=now), rows=password_links.SWEEP_ROWS
        ),
        pending_logins=await _in_batches(
            ctx, lambda tx: pending_logins.sweep(tx, now=now), rows=pending_logins.SWEEP_ROWS
        ),
        mta_sts_policies=await _in_batches(
            ctx, lambda tx: mta_sts_policies.sweep(tx, now=now), rows=mta_sts_policies.SWEEP_ROWS
        ),
        login_failures=await _in_batches(
            ctx, lambda tx: login_failures.sweep(tx, now=now), rows=login_failures.SWEEP_ROWS
        ),
        known_networks=await _in_batches(
            ctx,
            lambda tx: known_networks.sweep(tx, before=now - KNOWN_NETWORK_DAYS * times.DAY),
            rows=known_networks.SWEEP_ROWS,
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
            ctx,
            lambda tx: tls_reports.sweep(tx, until_day=times.day_of(now) - TLS_REPORT_DAYS),
            rows=tls_reports.SWEEP_ROWS,
        ),
        notices=await _in_batches(
            ctx, lambda tx: notices.sweep(tx, before=now - NOTICE_DAYS * times.DAY), rows=notices.SWEEP_ROWS
        ),
        notice_mails=await _in_batches(
            ctx, lambda tx: notices.sweep_mails(tx, before=now - NOTICE_DAYS * times.DAY), rows=notices.SWEEP_ROWS
        ),
    )
    # The longest work comes last, after the idempotency keys that refer to messages. Bodies are deleted before their
    # messages.
    tests = await retention.remove_test_mail(ctx, now=now)
    bodies = await retention.remove_bodies(ctx, now=now)
    mail = await retention.remove_messages(ctx, now=now)
    returned = await retention.return_space(ctx)
    has_more = any(one.has_more for one in (tests, bodies, mail, returned))
    return dataclasses.replace(swept, bodies=bodies.count, messages=tests.count + mail.count, has_more=has_more)


async def _sweep_log(ctx: context.Context, *, before: int) -> int:
    """Delete finished deliveries, deliveries that could not be made, and everything of removed endpoints.

    The schedule takes a day. What is left after a week belongs to a disabled endpoint, or to a backlog that its
    endpoint will never work off.
    """
    rows = webhook_deliveries.SWEEP_ROWS
    place = cursors.at(identifiers.WEBHOOK_DELIVERY, before)
    ended = await _in_batches(ctx, lambda tx: webhook_deliveries.sweep(tx, ended_before=before), rows=rows)
    untold = await _in_batches(
        ctx, lambda tx: webhook_deliveries.sweep_undelivered(tx, created_before=place), rows=rows
    )
    async with ctx.store.reading() as tx:
        gone = await webhooks.removed(tx, limit=MAX_REMOVED_ENDPOINTS)
    removed = [await _in_batches(ctx, functools.partial(_sweep_removed, endpoint), rows=rows) for endpoint in gone]
    return ended + untold + sum(removed)


async def _sweep_removed(endpoint: webhooks.RemovedEndpoint, tx: store.Transaction) -> int:
    removed = await webhook_deliveries.sweep_removed(tx, endpoint.account_id, endpoint.id)
    if removed < webhook_deliveries.SWEEP_ROWS:
        await webhooks.forget(tx, endpoint.id)
    return removed


async def _sweep_days(ctx: context.Context, tx: store.Transaction) -> int:
    """Delete days that the bounce guard no longer counts."""
    today = times.day_of(ctx.clock())
    days = ctx.settings.bounce_guard.days
    return await storage_bounce_guard_days.sweep(
        tx, until_day=today - days, reports_until_day=today - max(days, bounce_guard.SIGNATURE_DAYS)
    )


async def _in_batches(ctx: context.Context, work: Callable[[store.Transaction], Awaitable[int]], *, rows: int) -> int:
    """Run batches, each in its own transaction, so that others get the database in between."""
    total = 0
    for _ in range(MAX_BATCHES):
        async with ctx.store.transaction() as tx:
            removed = await work(tx)
        total += removed
        if removed < rows:
            break
    return total
