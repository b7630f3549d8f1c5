"""Replay of failed events: every event of a period that its endpoint did not receive, in batches.

The period is that of the events: an endpoint that was down for some hours gets what it missed. An event is replayed
once: not when another delivery of it succeeded or is pending, and not for each of its failures. Each batch is its own
transaction, in which the endpoint must exist and be enabled, so that results are recorded meanwhile. A call is bounded;
the next one continues where it stopped.
"""

import functools
from typing import Final

import msgspec

from postroad import errors
from postroad.model import cursors, identifiers, times
from postroad.services import audit_log, context, repeat_rate, work_limits
from postroad.services.maintenance import throttled_batches
from postroad.services.webhooks import delivery_log, endpoints
from postroad.storage import store, webhook_deliveries

BATCH: Final = 500
# As many as an endpoint accepts in some minutes.
MAX_REPLAYED: Final = 10_000
# Events replayed before are skipped, but examined: a few seconds of that, with the pauses between.
MAX_BATCHES: Final = 60
REPLAYS: Final = work_limits.WorkLimit("replays", per_account=1, per_process=4, retry_seconds=5)


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
    until = cursors.at(identifiers.WEBHOOK_DELIVERY, min(before, ctx.clock()))
    place, count = cursors.at(identifiers.WEBHOOK_DELIVERY, after), 0
    period = f"from {times.to_wire(_created_at(place))} to {times.to_wire(_created_at(until))}"
    with work_limits.acquire(ctx, REPLAYS, account_id):
        for number in range(MAX_BATCHES):
            if count + BATCH > MAX_REPLAYED:
                break
            work = functools.partial(
                _batch, ctx, account_id, webhook_id, after=place, before=until, audit_detail="" if count else period
            )
            step = await throttled_batches.run_batch(ctx, functools.partial(work, is_first=number == 0))
            count += step.count
            if step.count:
                ctx.webhook_wakeup.set()
            if step.place is None:
                return Replayed(count, None)
            place = step.place
    return Replayed(count, _created_at(place))


async def _batch(
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
        raise delivery_log.disabled()
    if is_first:  # a call counts as one
        await repeat_rate.take(ctx, tx, account_id, repeat_rate.Kind.REPLAYS)
    now = ctx.clock()
    found = await webhook_deliveries.failed_between(
        tx, webhook.id, after=after, before=before, ended_after=delivery_log.log_start(now), limit=BATCH
    )
    again = [delivery_log.new_replay(ctx, one.delivery, webhook, now=now) for one in found if not one.is_settled]
    if again:
        await webhook_deliveries.insert(tx, again)
    if again and audit_detail:
        await audit_log.write(ctx, tx, account_id, "webhook.replayed", "failed events", audit_detail)
    return _Step(len(again), found[-1].delivery.id if len(found) == BATCH else None)


def _created_at(place: str) -> int:
    return int(place.removeprefix(identifiers.WEBHOOK_DELIVERY)[:14], 16)
