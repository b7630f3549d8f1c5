"""The webhook delivery log of the last 7 days, and replays.

An entry is kept for this time after it ended. The log belongs to the endpoint and is removed with it.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from postroad import errors
from postroad.model import cursors, identifiers, times
from postroad.services import audit_log, context, repeat_rate
from postroad.services.webhooks import endpoints
from postroad.storage import store, webhook_attempts, webhook_deliveries
from postroad.storage import webhooks as stored

LOG_SECONDS: Final = 7 * 24 * 3600
# Per page, for deliveries that succeeded or are pending: about ten milliseconds of scanning.
MAX_SCANNED_ROWS: Final = 5_000

Status = Literal["pending", "succeeded", "failed"]
_STATUSES: Final[Mapping[str, Status]] = {
    webhook_deliveries.State.READY: "pending",
    webhook_deliveries.State.WAITING: "pending",
    webhook_deliveries.State.SUCCEEDED: "succeeded",
    webhook_deliveries.State.FAILED: "failed",
}


class Entry(msgspec.Struct, frozen=True):
    """A delivery with its attempts, and when the next one is due; None when there is none."""

    delivery: webhook_deliveries.Delivery
    attempts: Sequence[webhook_attempts.Attempt]
    next_attempt_at: int | None

    @property
    def status(self) -> Status:
        """The status of the delivery."""
        return _STATUSES[self.delivery.state]


class Page(msgspec.Struct, frozen=True):
    """A page of the log, and the `before` of the next page; None at the end."""

    entries: list[Entry]
    next_before: str | None


class _Wanted(msgspec.Struct, frozen=True):
    """The filters of a page."""

    message_id: str | None
    status: Status | None
    before: str
    ended_after: int
    limit: int


async def page(
    ctx: context.Context,
    account_id: str,
    webhook_id: str | None = None,
    *,
    message_id: str | None = None,
    status: Status | None = None,
    before: str | None = None,
    limit: int,
) -> list[Entry]:
    """The entries of a page; use `part` to continue with the next page."""
    found = await part(ctx, account_id, webhook_id, message_id=message_id, status=status, before=before, limit=limit)
    return found.entries


async def part(
    ctx: context.Context,
    account_id: str,
    webhook_id: str | None = None,
    *,
    message_id: str | None = None,
    status: Status | None = None,
    before: str | None = None,
    limit: int,
) -> Page:
    """A page of the log, newest first, filtered by message, status and `before`.

    Failed deliveries have an index. For another status at most `MAX_SCANNED_ROWS` entries are examined, so a page may
    be shorter than `limit`, or empty, without being the last.
    """
    place = cursors.end(identifiers.WEBHOOK_DELIVERY)
    if before is not None:
        place = cursors.check("before", before, identifiers.WEBHOOK_DELIVERY)
    if message_id is not None and not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        return Page([], None)
    now = ctx.clock()
    async with ctx.store.scanning(account_id) as tx:
        webhook = await endpoints.find_in(tx, account_id, webhook_id)
        if webhook is None and webhook_id is not None:
            raise endpoints.not_found()
        if webhook is None:
            return Page([], None)
        wanted = _Wanted(message_id, status, place, log_start(now), limit)
        found, next_before = await _choose(tx, webhook, wanted)
        entries = await _entries(tx, webhook, found, now=now)
    return Page(entries, next_before)


async def of_message(ctx: context.Context, account_id: str, message_id: str, *, limit: int) -> list[Entry]:
    """The newest deliveries about a message, to all endpoints of the account."""
    now = ctx.clock()
    wanted = _Wanted(message_id, None, cursors.end(identifiers.WEBHOOK_DELIVERY), log_start(now), limit)
    entries: list[Entry] = []
    async with ctx.store.scanning(account_id) as tx:
        for webhook in await stored.of_account(tx, account_id):
            found, _ = await _choose(tx, webhook, wanted)
            entries += await _entries(tx, webhook, found, now=now)
    return sorted(entries, key=lambda entry: entry.delivery.id, reverse=True)[:limit]


async def find(ctx: context.Context, account_id: str, delivery_id: str, *, webhook_id: str | None = None) -> Entry:
    """One entry of the log."""
    if not identifiers.is_identifier(delivery_id, identifiers.WEBHOOK_DELIVERY):
        raise _not_found()
    now = ctx.clock()
    async with ctx.store.reading() as tx:
        webhook = await endpoints.find_in(tx, account_id, webhook_id)
        if webhook is None:
            raise _not_found()
        delivery = await webhook_deliveries.by_id(tx, account_id, webhook.id, delivery_id, ended_after=log_start(now))
        if delivery is None:
            raise _not_found()
        (entry,) = await _entries(tx, webhook, [delivery], now=now)
    return entry


async def replay(ctx: context.Context, account_id: str, delivery_id: str, *, webhook_id: str | None = None) -> Entry:
    """Send the same event again, with the same bytes and the full schedule, whatever its result was."""
    if not identifiers.is_identifier(delivery_id, identifiers.WEBHOOK_DELIVERY):
        raise _not_found()
    async with ctx.store.transaction() as tx:
        # A locked endpoint is neither removed nor disabled before the new delivery is written.
        webhook = await endpoints.find_locked(tx, account_id, webhook_id)
        now = ctx.clock()
        if webhook is None:
            raise _not_found()
        ended_after = log_start(now)
        old = await webhook_deliveries.by_id(tx, account_id, webhook.id, delivery_id, ended_after=ended_after)
        if old is None:
            raise _not_found()
        if not webhook.enabled:
            raise disabled()
        await repeat_rate.take(ctx, tx, account_id, repeat_rate.Kind.REPLAYS)
        again = new_replay(ctx, old, webhook, now=now)
        await webhook_deliveries.insert(tx, [again])
        await audit_log.write(ctx, tx, account_id, "webhook.replayed", old.id, old.event_type)
    ctx.webhook_wakeup.set()
    return Entry(again, (), next_attempt_at=now)


def new_replay(
    ctx: context.Context, old: webhook_deliveries.Delivery, webhook: stored.Webhook, *, now: int
) -> webhook_deliveries.Delivery:
    """A new delivery of the same event and bytes, to the current URL."""
    return webhook_deliveries.Delivery(
        account_id=old.account_id,
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


async def _choose(
    tx: store.Transaction, webhook: stored.Webhook, wanted: _Wanted
) -> tuple[list[webhook_deliveries.Delivery], str | None]:
    """The deliveries of a page, and the `before` of the next page."""
    names = (webhook.account_id, webhook.id)
    before, ended_after, limit = wanted.before, wanted.ended_after, wanted.limit + 1
    down_to = None
    if wanted.message_id is not None:
        found = await webhook_deliveries.page_of_message(
            tx, *names, wanted.message_id, before=before, ended_after=ended_after, status=wanted.status, limit=limit
        )
    elif wanted.status is None:
        found = await webhook_deliveries.page(tx, *names, before=before, ended_after=ended_after, limit=limit)
    elif wanted.status == "failed":
        found = await webhook_deliveries.page_failed(
            tx, webhook.id, before=before, ended_after=ended_after, limit=limit
        )
    else:
        down_to = await webhook_deliveries.place_behind(tx, *names, before=before, rows=MAX_SCANNED_ROWS)
        found = await webhook_deliveries.page_of_status(
            tx,
            *names,
            before=before,
            down_to=down_to or "",
            ended_after=ended_after,
            status=wanted.status,
            limit=limit,
        )
    following = cursors.next_cursor([one.id for one in found], limit=wanted.limit)
    return found[: wanted.limit], following or down_to


async def _entries(
    tx: store.Transaction, webhook: stored.Webhook, found: Sequence[webhook_deliveries.Delivery], *, now: int
) -> list[Entry]:
    """Deliveries with their attempts."""
    by_delivery: dict[str, list[webhook_attempts.Attempt]] = {one.id: [] for one in found}
    for attempt in await webhook_attempts.of_deliveries(tx, webhook.account_id, webhook.id, list(by_delivery)):
        by_delivery[attempt.delivery_id].append(attempt)
    return [Entry(one, by_delivery[one.id], next_attempt_at=_next_attempt_at(one, webhook, now=now)) for one in found]


def _next_attempt_at(delivery: webhook_deliveries.Delivery, webhook: stored.Webhook, *, now: int) -> int | None:
    """When a delivery is due: None when it is final or held, and while an attempt is running."""
    if delivery.ended_at is not None or not webhook.enabled:
        return None
    if delivery.state == webhook_deliveries.State.READY:
        return min(delivery.due_at, now)
    return delivery.due_at if delivery.worker is None else None


def log_start(now: int) -> int:
    """Entries that ended before this are not shown, whether they were deleted yet or not."""
    return now - LOG_SECONDS * times.SECOND


def disabled() -> errors.Conflict:
    """The error for a disabled endpoint: it gets no deliveries, so nothing can be replayed."""
    return errors.Conflict("the webhook is disabled; enable it and try again")


def _not_found() -> errors.NotFound:
    return errors.NotFound("no such webhook delivery in this account")
