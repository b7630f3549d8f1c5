"""Hold and release: the operator keeps queued mail back, for everything, an account or a recipient domain.

A hold is a row of the store, so it lasts over restarts and applies on every host within a poll of its delivery engine.
Mail is accepted as before; held recipients stay queued, and expire only if their own `expires_in` is over. After a
restore everything is held, because what was delivered since the backup would be delivered again; after a move to
another database, so that somebody can look first.
"""

from collections import Counter
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.units import labels, times
from postroad.services import audit_log
from postroad.storage.engine import store
from postroad.storage.mail import delivery_controls, queue, queue_views
from postroad.storage.people import accounts

PAGE: Final = 1_000


class QueuedCount(msgspec.Struct, frozen=True):
    """How many recipients at a domain an account has in the queue."""

    account_id: str
    domain: str
    recipients: int


def scope(hold: delivery_controls.Hold | queue_views.Selection) -> str:
    mail = f"mail to {hold.domain}" if hold.domain else "all mail"
    return f"{mail} of account {hold.account_id}" if hold.account_id else mail


async def in_force(ctx: context.Context) -> list[delivery_controls.Hold]:
    """The holds in force, oldest first."""
    async with ctx.store.reading() as tx:
        return [held for held in await delivery_controls.listed_holds(tx) if held.released_at is None]


async def find(ctx: context.Context, *, account_id: str, domain: str) -> delivery_controls.Hold:
    """The hold in force with exactly this scope."""
    found = await in_force(ctx)
    for held in found:
        if (held.account_id, held.domain) == (account_id, domain):
            return held
    asked = scope(delivery_controls.Hold(account_id, domain, "", 0))
    others = ", ".join(scope(other) for other in found)
    raise errors.NotFound(f"{asked}: not held; {f'held: {others}' if others else 'nothing is held'}")


async def hold(
    ctx: context.Context,
    *,
    account_id: str = delivery_controls.HOLD_ALL,
    domain: str = delivery_controls.HOLD_ALL,
    reason: str = "postroad queue hold",
) -> bool:
    """Hold mail; False when exactly this was held already."""
    labels.check_label("reason", reason, limit=labels.REASON_CHARACTERS)
    async with ctx.store.transaction() as tx:
        return await _put(ctx, tx, delivery_controls.Hold(account_id, domain, reason, ctx.clock()))


async def _put(ctx: context.Context, tx: store.Transaction, held: delivery_controls.Hold) -> bool:
    """Hold mail in this transaction; False when it was held already."""
    is_new = await delivery_controls.put_hold(tx, held)
    if is_new:
        await _write_audit_log(ctx, tx, "delivery.held", held)
    return is_new


async def hold_moved(ctx: context.Context, tx: store.Transaction) -> None:
    """Hold everything that was moved from another database, until somebody has looked at it."""
    everything = delivery_controls.HOLD_ALL
    await _put(ctx, tx, delivery_controls.Hold(everything, everything, "moved from SQLite", ctx.clock()))


async def hold_restored(ctx: context.Context) -> delivery_controls.Hold:
    """Hold everything after a restore: what was queued at the time of the backup may have been delivered since.

    The workers of that time are gone, and with them their leases.
    """
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        newest = await delivery_controls.newest_held_at(tx)
    content = f"whose newest message is from {times.to_wire(newest)}" if newest else "without messages"
    held = delivery_controls.Hold(
        delivery_controls.HOLD_ALL,
        delivery_controls.HOLD_ALL,
        f"restored from a backup {content}",
        now,
        None,
        in_doubt_before=now,
    )
    async with ctx.store.transaction() as tx:
        await queue.end_leases(tx, now=now)
        await _put(ctx, tx, held)
    return held


async def release(ctx: context.Context, held: delivery_controls.Hold) -> None:
    """Release a hold. What other holds cover stays held."""
    async with ctx.store.transaction() as tx:
        if await delivery_controls.release_hold(tx, held, now=ctx.clock()):
            await _write_audit_log(ctx, tx, "delivery.released", held)
    ctx.mail_wakeup.set()


async def release_named(
    ctx: context.Context, *, account_id: str, domain: str, duplicates_accepted: bool
) -> delivery_controls.Hold:
    """Release the hold with exactly this scope; Conflict after a restore, unless duplicates are accepted."""
    held = await find(ctx, account_id=account_id, domain=domain)
    if held.in_doubt_before is not None and not duplicates_accepted:
        raise errors.Conflict(f"duplicates_accepted: mail may be delivered twice; {held.reason}")
    await release(ctx, held)
    return held


async def queued_counts(ctx: context.Context, held: delivery_controls.Hold) -> list[QueuedCount]:
    """What a hold keeps back by account and domain, most first; after a restore, what may be a duplicate."""
    async with ctx.store.scanning() as tx:
        counts = await delivery_controls.held_counts(tx, held, queued_before=_queued_before(held))
    totals: Counter[tuple[str, str]] = Counter()
    for key, number in counts:
        domain, account_id, *_ = queue.parts_of(key)
        totals[account_id, domain] += number
    return [QueuedCount(account_id, domain, number) for (account_id, domain), number in totals.most_common()]


async def queued_recipients(
    ctx: context.Context, held: delivery_controls.Hold
) -> AsyncIterator[delivery_controls.HeldRecipient]:
    """Each of these recipients. Every page is a read of its own, so that a long list blocks nothing."""
    after: queue.Key = ("", "", "")
    while True:
        async with ctx.store.scanning() as tx:
            page = await delivery_controls.held_recipients(
                tx, held, queued_before=_queued_before(held), after=after, limit=PAGE
            )
        for recipient in page:
            yield recipient
        if len(page) < PAGE:
            return
        after = (page[-1].account_id, page[-1].message_id, page[-1].recipient_id)


def _queued_before(held: delivery_controls.Hold) -> int:
    return queue.ANY_TIME if held.in_doubt_before is None else held.in_doubt_before


async def _write_audit_log(
    ctx: context.Context, tx: store.Transaction, action: str, held: delivery_controls.Hold
) -> None:
    """In the log of each account that it concerns."""
    subject = f"mail to {held.domain}" if held.domain else "all mail"
    if held.account_id:
        await audit_log.write(ctx, tx, held.account_id, action, subject, held.reason)
        return
    after = ""
    while page := await accounts.page(tx, after=after, limit=PAGE):
        for account in page:
            await audit_log.write(ctx, tx, account.id, action, subject, held.reason)
        after = page[-1].id
