"""Notices that no single change causes: mail that waits, a provider that blocks us, low credits or space, ending keys.

Every process with the maintenance role looks, and a notice about the same subject is written once. It scans the queue
as the metrics do, so it looks only every few minutes.
"""

from typing import Final

from postroad import context
from postroad.mail import notice_kinds, notice_outbox
from postroad.mail.accept import queue_limit
from postroad.model.bounces import reasons
from postroad.model.delivery import providers
from postroad.model.units import times
from postroad.storage.engine import store
from postroad.storage.mail import mail_counts, queue_views
from postroad.storage.people import accounts, credentials

# The owners get a notice this many days before a key expires.
KEY_DAYS: Final = (7, 1)
# Longer than a restart or a short outage of the network takes; the metrics show shorter waits.
QUEUE_DELAY_MINUTES: Final = 30
# A block is this many refusals in this many hours, by a named provider, whose mail servers nobody can imitate.
MIN_BLOCKED: Final = 10
BLOCKED_HOURS: Final = 3
# In a round, of each kind; the rest follows in later rounds.
MAX_ROWS: Final = 1_000


async def look(ctx: context.Context) -> None:
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        found = [
            *await _delayed_queue(tx, now),
            *await _blocked_addresses(tx, now),
            *await _low_credits(ctx, tx, now),
            *await _ending_keys(tx, now),
        ]
    found += await _low_storage(ctx)
    for notice in found:  # each for itself: other writers wait only for a moment
        async with ctx.store.transaction() as tx:
            await notice_outbox.write(tx, [notice], now=now, entropy=ctx.entropy)


async def _delayed_queue(tx: store.Transaction, now: int) -> list[notice_outbox.NewNotice]:
    ready = (await queue_views.counts(tx, queue_views.Filter())).get(queue_views.READY)
    if ready is None or now - ready.due_at < QUEUE_DELAY_MINUTES * 60 * times.SECOND:
        return []
    minutes = (now - ready.due_at) // (60 * times.SECOND)
    values = {"minutes": str(minutes), "recipients": str(ready.recipients)}
    return [notice_outbox.NewNotice(kind=notice_kinds.QUEUE_DELAYED, subject="queue", values=values)]


async def _blocked_addresses(tx: store.Transaction, now: int) -> list[notice_outbox.NewNotice]:
    refused = await mail_counts.failures_by_provider(
        tx, {reasons.IP_BLOCKED}, since_hour=mail_counts.hour_of(now) - BLOCKED_HOURS
    )
    return [
        notice_outbox.NewNotice(
            kind=notice_kinds.ADDRESS_BLOCKED,
            subject=provider,
            values={
                "provider": providers.NAMES[provider],
                "blocklist": "",
                "recipients": str(recipients),
                "source": "",
            },
        )
        for provider, recipients in refused.items()
        if provider in providers.NAMES and recipients >= MIN_BLOCKED
    ]


async def _low_credits(ctx: context.Context, tx: store.Transaction, now: int) -> list[notice_outbox.NewNotice]:
    if not ctx.settings.credits.enabled:
        return []
    since_hour = mail_counts.hour_of(now) - accounts.LOW_CREDIT_HOURS
    return [
        notice_outbox.NewNotice(
            kind=notice_kinds.CREDITS_LOW,
            subject=account_id,
            values={"available": str(available), "used": str(used)},
            account_id=account_id,
        )
        for account_id, available, used in await accounts.low_on_credits(tx, since_hour=since_hour, limit=MAX_ROWS)
    ]


async def _low_storage(ctx: context.Context) -> list[notice_outbox.NewNotice]:
    near = queue_limit.near_quota(await queue_limit.read_usage(ctx.store, ctx.settings), ctx.settings)
    return [
        notice_outbox.NewNotice(
            kind=notice_kinds.STORAGE_LOW,
            subject=f"{account.account_id} test" if account.is_test else account.account_id,
            values={
                "used": str(account.used // queue_limit.MEBIBYTE),
                "quota": str(account.quota // queue_limit.MEBIBYTE),
                "is_test": "test" if account.is_test else "",
                "days": str(queue_limit.TEST_MAIL_DAYS),
            },
            account_id=account.account_id,
        )
        for account in near[:MAX_ROWS]
    ]


async def _ending_keys(tx: store.Transaction, now: int) -> list[notice_outbox.NewNotice]:
    """The keys whose end comes near. A key that was made for a shorter time is not worth a notice."""
    told = []
    for days, until in zip(KEY_DAYS, (*KEY_DAYS[1:], 0), strict=True):
        found = await credentials.expiring_keys(
            tx, after=now + until * times.DAY, until=now + days * times.DAY, limit=MAX_ROWS
        )
        for key in found:
            ends_at = key.limits.expires_at or 0
            if key.created_at <= ends_at - days * times.DAY:
                values = {"key": key.name, "hint": key.hint, "expires_at": times.to_wire(ends_at)}
                subject = f"{key.id} {ends_at} {days}"
                told.append(
                    notice_outbox.NewNotice(
                        kind=notice_kinds.KEY_ENDING, subject=subject, values=values, account_id=key.account_id
                    )
                )
    return told
