"""The webhook delivery log of the last 7 days, replays, and pings."""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from postroad import context, errors
from postroad.model.events import event_formats, events
from postroad.model.units import identifiers, times
from postroad.services import audit_log, throttled_batches, usage_limits
from postroad.services.webhooks import endpoint_settings, endpoints, signed_requests
from postroad.storage.engine import store
from postroad.storage.mail import webhooks

LOG_SECONDS: Final = 7 * 24 * 3600
# Per page, for deliveries that succeeded or are pending: about ten milliseconds of scanning.
MAX_SCANNED_ROWS: Final = 5_000
# Of each endpoint in a list of them.
MAX_SUMMARIZED_ROWS: Final = 1_000

Status = Literal["pending", "succeeded", "failed"]
_STATUSES: Final[Mapping[str, Status]] = {
    webhooks.State.READY: "pending",
    webhooks.State.WAITING: "pending",
    webhooks.State.SUCCEEDED: "succeeded",
    webhooks.State.FAILED: "failed",
}


class Entry(msgspec.Struct, frozen=True):
    """A delivery with its attempts, and when the next one is due; None when there is none."""

    delivery: webhooks.Delivery
    attempts: Sequence[webhooks.Attempt]
    next_attempt_at: int | None

    @property
    def status(self) -> Status:
        return _STATUSES[self.delivery.state]


class _Wanted(msgspec.Struct, frozen=True):
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
) -> identifiers.Page[Entry]:
    """A page of the log, newest first, filtered by message, status and `before`.

    Failed deliveries have an index. For another status at most `MAX_SCANNED_ROWS` entries are examined, so a page may
    be shorter than `limit`, or empty, without being the last.
    """
    place = identifiers.before(before, identifiers.WEBHOOK_DELIVERY)
    if message_id is not None and not identifiers.is_identifier(message_id, identifiers.MESSAGE):
        return identifiers.Page([], None)
    now = ctx.clock()
    async with ctx.store.scanning(account_id) as tx:
        webhook = await endpoints.find_in(tx, account_id, webhook_id)
        if webhook is None and webhook_id is not None:
            raise endpoints.not_found()
        if webhook is None:
            return identifiers.Page([], None)
        wanted = _Wanted(message_id, status, place, log_start(now), limit)
        found, next_cursor = await _choose(tx, webhook, wanted)
        entries = await _entries(tx, webhook, found, now=now)
    return identifiers.Page(entries, next_cursor)


async def summaries(ctx: context.Context, found: Sequence[webhooks.Webhook]) -> dict[str, webhooks.Summary]:
    """How deliveries to endpoints of an account have ended in the last 24 hours, by endpoint, of those with any."""
    since = identifiers.at(identifiers.WEBHOOK_DELIVERY, ctx.clock() - times.DAY)
    if not found:
        return {}
    account_id = found[0].account_id
    async with ctx.store.scanning(account_id) as tx:
        return await webhooks.summaries(
            tx, account_id, [webhook.id for webhook in found], since=since, limit=MAX_SUMMARIZED_ROWS
        )


async def of_message(ctx: context.Context, account_id: str, message_id: str, *, limit: int) -> list[Entry]:
    """The newest deliveries about a message, to all endpoints of the account."""
    now = ctx.clock()
    wanted = _Wanted(message_id, None, identifiers.end(identifiers.WEBHOOK_DELIVERY), log_start(now), limit)
    entries: list[Entry] = []
    async with ctx.store.scanning(account_id) as tx:
        for webhook in await webhooks.of_account(tx, account_id):
            found, _ = await _choose(tx, webhook, wanted)
            entries += await _entries(tx, webhook, found, now=now)
    return sorted(entries, key=lambda entry: entry.delivery.id, reverse=True)[:limit]


async def find(ctx: context.Context, account_id: str, delivery_id: str, *, webhook_id: str | None = None) -> Entry:
    if not identifiers.is_identifier(delivery_id, identifiers.WEBHOOK_DELIVERY):
        raise _not_found()
    now = ctx.clock()
    async with ctx.store.reading() as tx:
        webhook = await endpoints.find_in(tx, account_id, webhook_id)
        if webhook is None:
            raise _not_found()
        delivery = await webhooks.delivery_by_id(tx, account_id, webhook.id, delivery_id, ended_after=log_start(now))
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
        old = await webhooks.delivery_by_id(tx, account_id, webhook.id, delivery_id, ended_after=ended_after)
        if old is None:
            raise _not_found()
        if not webhook.enabled:
            raise disabled()
        await usage_limits.take_repeat(ctx, tx, account_id, usage_limits.Repeat.REPLAYS)
        again = new_replay(ctx, old, webhook, now=now)
        await webhooks.insert_deliveries(tx, [again])
        await audit_log.write(ctx, tx, account_id, "webhook.replayed", old.id, old.event_type)
    ctx.webhook_wakeup.set()
    return Entry(again, (), next_attempt_at=now)


def new_replay(
    ctx: context.Context, old: webhooks.Delivery, webhook: webhooks.Webhook, *, now: int
) -> webhooks.Delivery:
    """A new delivery of the same event and bytes, to the current URL."""
    return webhooks.Delivery(
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
    tx: store.Transaction, webhook: webhooks.Webhook, wanted: _Wanted
) -> identifiers.Page[webhooks.Delivery]:
    names = (webhook.account_id, webhook.id)
    before, ended_after, limit = wanted.before, wanted.ended_after, wanted.limit + 1
    down_to = None
    if wanted.message_id is not None:
        found = await webhooks.page_of_message(
            tx, *names, wanted.message_id, before=before, ended_after=ended_after, status=wanted.status, limit=limit
        )
    elif wanted.status is None:
        found = await webhooks.delivery_page(tx, *names, before=before, ended_after=ended_after, limit=limit)
    elif wanted.status == "failed":
        found = await webhooks.page_failed(tx, webhook.id, before=before, ended_after=ended_after, limit=limit)
    else:
        down_to = await webhooks.place_behind(tx, *names, before=before, rows=MAX_SCANNED_ROWS)
        found = await webhooks.page_of_status(
            tx,
            *names,
            before=before,
            down_to=down_to or "",
            ended_after=ended_after,
            status=wanted.status,
            limit=limit,
        )
    rows, following = identifiers.page(found, limit=wanted.limit)
    return identifiers.Page(rows, following or down_to)


async def _entries(
    tx: store.Transaction, webhook: webhooks.Webhook, found: Sequence[webhooks.Delivery], *, now: int
) -> list[Entry]:
    by_delivery: dict[str, list[webhooks.Attempt]] = {delivery.id: [] for delivery in found}
    for attempt in await webhooks.attempts_of_deliveries(tx, webhook.account_id, webhook.id, list(by_delivery)):
        by_delivery[attempt.delivery_id].append(attempt)
    return [
        Entry(delivery, by_delivery[delivery.id], next_attempt_at=_next_attempt_at(delivery, webhook, now=now))
        for delivery in found
    ]


def _next_attempt_at(delivery: webhooks.Delivery, webhook: webhooks.Webhook, *, now: int) -> int | None:
    """When a delivery is due: None when it is final or held, and while an attempt is running."""
    if delivery.ended_at is not None or not webhook.enabled:
        return None
    if delivery.state == webhooks.State.READY:
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


# Replay of failed events: every event of a period that its endpoint did not receive, in batches.
#
# The period is that of the events: an endpoint that was down for some hours gets what it missed. An event is replayed
# once: not when another delivery of it succeeded or is pending, and not for each of its failures. Each batch is its own
# transaction, in which the endpoint must exist and be enabled, so that results are recorded meanwhile. A call is
# bounded; the next one continues where it stopped.

REPLAY_BATCH: Final = 500
# As many as an endpoint accepts in some minutes.
MAX_REPLAYED: Final = 10_000
# Events replayed before are skipped, but examined: a few seconds of that, with the pauses between.
MAX_REPLAY_BATCHES: Final = 60
REPLAYS: Final = usage_limits.WorkLimit("replays", per_account=1, per_process=4, retry_seconds=5)


class Replayed(msgspec.Struct, frozen=True):
    """How many events are replayed, and where to continue; None when the period is complete."""

    count: int
    next_after: int | None

    @property
    def has_more(self) -> bool:
        """Whether part of the period was not examined."""
        return self.next_after is not None


class _Step(msgspec.Struct, frozen=True):
    """A batch's result: how many replays, and the last delivery examined; None at the end."""

    count: int
    place: str | None


async def replay_failed(
    ctx: context.Context, account_id: str, webhook_id: str | None = None, *, after: int, before: int
) -> Replayed:
    """Replay failed events created from one time on and before another."""
    if after >= before:
        raise errors.InvalidRequest("before: must be later than after")
    # Events created from now on are excluded: they include the replays themselves.
    until = identifiers.at(identifiers.WEBHOOK_DELIVERY, min(before, ctx.clock()))
    place, count = identifiers.at(identifiers.WEBHOOK_DELIVERY, after), 0
    period = f"from {times.to_wire(_created_at(place))} to {times.to_wire(_created_at(until))}"
    with usage_limits.acquire(ctx, REPLAYS, account_id):
        for number in range(MAX_REPLAY_BATCHES):
            if count + REPLAY_BATCH > MAX_REPLAYED:
                break
            work = functools.partial(
                _replay_batch,
                ctx,
                account_id,
                webhook_id,
                after=place,
                before=until,
                audit_detail="" if count else period,
            )
            step = await throttled_batches.run_batch(ctx, functools.partial(work, is_first=number == 0))
            count += step.count
            if step.count:
                ctx.webhook_wakeup.set()
            if step.place is None:
                return Replayed(count, None)
            place = step.place
    return Replayed(count, _created_at(place))


async def _replay_batch(
    ctx: context.Context,
    account_id: str,
    webhook_id: str | None,
    tx: store.Transaction,
    *,
    after: str,
    before: str,
    audit_detail: str,
    is_first: bool,
) -> _Step:
    webhook = await endpoints.lock(tx, account_id, webhook_id)
    if not webhook.enabled:
        raise disabled()
    if is_first:  # a call counts as one
        await usage_limits.take_repeat(ctx, tx, account_id, usage_limits.Repeat.REPLAYS)
    now = ctx.clock()
    found = await webhooks.failed_between(
        tx, webhook.id, after=after, before=before, ended_after=log_start(now), limit=REPLAY_BATCH
    )
    again = [new_replay(ctx, failure.delivery, webhook, now=now) for failure in found if not failure.is_settled]
    if again:
        await webhooks.insert_deliveries(tx, again)
    if again and audit_detail:
        await audit_log.write(ctx, tx, account_id, "webhook.replayed", "failed events", audit_detail)
    return _Step(len(again), found[-1].delivery.id if len(found) == REPLAY_BATCH else None)


def _created_at(place: str) -> int:
    return int(place.removeprefix(identifiers.WEBHOOK_DELIVERY)[:14], 16)


# Ping: a test event to an endpoint, sent once while the caller waits.
#
# Every response is a result and goes into the log. No transaction is open during the request. Pings have a minimum
# interval over all hosts, because a caller can trigger requests to other hosts with them.

MIN_PING_INTERVAL_SECONDS: Final = 15


async def ping(ctx: context.Context, account_id: str, webhook_id: str | None = None) -> Entry:
    """Send a test event once, whether the endpoint is enabled or not; the result is logged."""
    webhook, secrets, now = await _begin_ping(ctx, account_id, webhook_id)
    event_id = ctx.new_id(identifiers.EVENT, now=now)
    if webhook.format == event_formats.OWN:
        body = events.ping(event_id, created_at=now)
    else:
        body = ctx.event_formats[webhook.format].ping(now)
    attempted = await signed_requests.attempt(ctx, webhook, event_id=event_id, secrets=secrets, body=body)
    delivery = webhooks.Delivery(
        account_id=account_id,
        webhook_id=webhook.id,
        id=ctx.new_id(identifiers.WEBHOOK_DELIVERY, now=now),
        event_id=event_id,
        event_type=events.EventType.TEST,
        message_id=None,
        recipient_id=None,
        url=webhook.url,
        body=body,
        state=webhooks.State.SUCCEEDED if attempted.response.succeeded else webhooks.State.FAILED,
        attempt_count=1,
        due_at=now,
        created_at=now,
        ended_at=ctx.clock(),
    )
    attempt = signed_requests.attempt_row(delivery.key, 1, attempted)
    await _store_ping(ctx, delivery, attempt)
    return Entry(delivery, [attempt], next_attempt_at=None)


async def _begin_ping(
    ctx: context.Context, account_id: str, webhook_id: str | None
) -> tuple[webhooks.Webhook, list[str], int]:
    """The endpoint, its secrets and the start time; refused when the last ping was a moment ago, on any host."""
    async with ctx.store.transaction() as tx:
        webhook = await endpoints.lock(tx, account_id, webhook_id)
        if webhook.is_listener:
            raise errors.Conflict("this webhook has no URL: its events are fetched; send a message to get one")
        if webhook.format != event_formats.OWN:
            endpoint_settings.find_format(ctx.event_formats, webhook.format)
        now = ctx.clock()
        if not await webhooks.mark_pinged(
            tx, webhook, now=now, not_since=now - MIN_PING_INTERVAL_SECONDS * times.SECOND
        ):
            left = MIN_PING_INTERVAL_SECONDS + ((await webhooks.pinged_at(tx, webhook) or now) - now) / times.SECOND
            raise errors.RateLimited(
                f"a ping was sent a moment ago; wait {MIN_PING_INTERVAL_SECONDS} seconds between pings",
                retry_after=max(1, math.ceil(left)),
            )
        sealed = await webhooks.secrets(tx, [webhook.id], now=now)
        await audit_log.write(ctx, tx, account_id, "webhook.pinged", endpoints.host(webhook.url))
    return webhook, [signed_requests.decrypt_secret(ctx, secret) for secret in sealed], now


async def _store_ping(ctx: context.Context, delivery: webhooks.Delivery, attempt: webhooks.Attempt) -> None:
    async with ctx.store.transaction() as tx:
        # An endpoint removed during the request has no log any more.
        if await endpoints.find_locked(tx, delivery.account_id, delivery.webhook_id) is not None:
            await webhooks.insert_deliveries(tx, [delivery])
            await webhooks.insert_attempts(tx, [attempt])
