"""What an account's receiver was told, or is to be: the log of 7 days, and telling something again.

An entry is kept for so long after it has ended. The log belongs to the endpoint: when that is removed, it is gone at
once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from postroad import errors
from postroad.model import cursors, identifiers, times
from postroad.services import context, webhooks
from postroad.storage import store, webhook_attempts, webhook_deliveries
from postroad.storage import webhooks as stored

LOG_SECONDS: Final = 7 * 24 * 3600

Status = Literal["pending", "succeeded", "failed"]
_STATUSES: Final[Mapping[str, Status]] = {
    webhook_deliveries.State.READY: "pending",
    webhook_deliveries.State.WAITING: "pending",
    webhook_deliveries.State.SUCCEEDED: "succeeded",
    webhook_deliveries.State.FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A delivery with its attempts, and when the next one is due; None when there is none to wait for."""

    delivery: webhook_deliveries.Delivery
    attempts: Sequence[webhook_attempts.Attempt]
    next_attempt_at: int | None

    @property
    def status(self) -> Status:
        """How far it is, as its account sees it."""
        return _STATUSES[self.delivery.state]


async def page(
    ctx: context.Context, account_id: str, *, message_id: str | None = None, before: str | None = None, limit: int
) -> list[Entry]:
    """Entries of the log, newest first; those about one message, and those behind an entry, when they are named."""
    place = cursors.end(identifiers.WEBHOOK_DELIVERY)
    if before is not None:
        place = cursors.check("before", before, identifiers.WEBHOOK_DELIVERY)
    if message_id is not None and not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        return []
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        webhook = await stored.of_account(tx, account_id)
        if webhook is None:
            return []
        found = await _page(tx, webhook, message_id, before=place, now=now, limit=limit)
        attempts = await webhook_attempts.of_deliveries(tx, account_id, webhook.id, [one.id for one in found])
    by_delivery: dict[str, list[webhook_attempts.Attempt]] = {one.id: [] for one in found}
    for attempt in attempts:
        by_delivery[attempt.delivery_id].append(attempt)
    return [Entry(one, by_delivery[one.id], next_attempt_at=_next_attempt_at(one, webhook, now=now)) for one in found]


async def replay(ctx: context.Context, account_id: str, delivery_id: str) -> Entry:
    """Tell the same event again, with the same bytes and on the full schedule, whatever came of it before."""
    if not identifiers.is_identifier(delivery_id, identifiers.WEBHOOK_DELIVERY):
        raise _unknown()
    async with ctx.store.transaction() as tx:
        # An endpoint that is held neither goes nor is disabled before the new delivery is written.
        webhook = await webhooks.find_held(tx, account_id)
        now = ctx.clock()
        if webhook is None:
            raise _unknown()
        ended_after = _ended_after(now)
        old = await webhook_deliveries.by_id(tx, account_id, webhook.id, delivery_id, ended_after=ended_after)
        if old is None:
            raise _unknown()
        if not webhook.enabled:
            raise errors.Conflict("the webhook is disabled; enable it and try again")
        again = webhook_deliveries.Delivery(
            account_id=account_id,
            webhook_id=webhook.id,
            id=ctx.new_id(identifiers.WEBHOOK_DELIVERY, now=now),
            event_id=old.event_id,
            event_type=old.event_type,
            message_id=old.message_id,
            recipient_id=old.recipient_id,
            replay_of=old.id,
            url=webhook.url,
            body=old.body,
            due_at=now,
            created_at=now,
        )
        await webhook_deliveries.insert(tx, [again])
    ctx.tidings.set()
    return Entry(again, (), next_attempt_at=now)


async def _page(
    tx: store.Transaction, webhook: stored.Webhook, message_id: str | None, *, before: str, now: int, limit: int
) -> list[webhook_deliveries.Delivery]:
    ended_after = _ended_after(now)
    account_id, webhook_id = webhook.account_id, webhook.id
    if message_id is None:
        return await webhook_deliveries.page(
            tx, account_id, webhook_id, before=before, ended_after=ended_after, limit=limit
        )
    return await webhook_deliveries.page_of_message(
        tx, account_id, webhook_id, message_id, before=before, ended_after=ended_after, limit=limit
    )


def _next_attempt_at(delivery: webhook_deliveries.Delivery, webhook: stored.Webhook, *, now: int) -> int | None:
    """When a delivery is due: never when it has ended or is held, and unknown while an attempt is under way."""
    if delivery.ended_at is not None or not webhook.enabled:
        return None
    if delivery.state == webhook_deliveries.State.READY:
        return min(delivery.due_at, now)
    return delivery.due_at if delivery.worker is None else None


def _ended_after(now: int) -> int:
    """What ended by then is not shown any more, whether it was swept or not."""
    return now - LOG_SECONDS * times.SECOND


def _unknown() -> errors.NotFound:
    return errors.NotFound("there is no such webhook delivery in this account")
