"""One attempt of a webhook delivery: sign, post, record the result, and judge the endpoint by it."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from postroad import context, errors
from postroad.model.events import webhook_schedule
from postroad.model.units import times
from postroad.network.http import guarded_client as webhook_client
from postroad.services.webhooks import endpoints
from postroad.services.webhooks import signed_requests as webhook_attempt
from postroad.storage.engine import group_commit, store
from postroad.storage.webhook import webhook_deliveries, webhooks
from postroad.telemetry import logs


class EndpointHealth:
    """Starts notes, and waits for them at the end."""

    def __init__(self, ctx: context.Context, *, log: logs.Logger) -> None:
        self._ctx = ctx
        self._log = log
        self._notes: dict[str, asyncio.Task[None]] = {}

    def observe(self, webhook: webhooks.Webhook, *, succeeded: bool, at: int) -> None:
        """Take note of a recorded attempt, if it is news and no other note of the endpoint is under way."""
        is_news = endpoints.is_news(webhook, succeeded=succeeded, now=self._ctx.clock())
        if is_news and webhook.id not in self._notes:
            task = asyncio.get_running_loop().create_task(self._note(webhook, succeeded=succeeded, at=at))
            self._notes[webhook.id] = task
            task.add_done_callback(lambda _: self._notes.pop(webhook.id))

    async def close(self, *, seconds: float) -> None:
        """Wait for notes under way, at most this long."""
        if self._notes:
            _, late = await asyncio.wait(list(self._notes.values()), timeout=seconds)
            for task in late:
                task.cancel()

    async def _note(self, webhook: webhooks.Webhook, *, succeeded: bool, at: int) -> None:
        try:
            await endpoints.note_attempts(self._ctx, webhook, succeeded=succeeded, at=at, log=self._log)
        except store.UNAVAILABLE as error:
            # The next attempt notes the same.
            self._log.warning("webhook_health_unavailable", error=error.message)
        except Exception:  # noqa: BLE001 - logged; deliveries go on
            self._log.exception("webhook_health_failed", webhook_id=webhook.id)


# From responses to records: the final state or the time of the next attempt, and the attempt in the webhook log.
#
# A result is never dropped: while the database is unavailable it is kept and submitted again. How many may wait is
# bounded; beyond that nothing more is claimed (`is_full`), so that a crash leaves few in doubt. Nor is anything claimed
# while a refused result waits: otherwise its own worker might find the lease expired and send the event again. A result
# counts only while its lease is valid: a later one is only logged. Only a stop ends the waiting: results that cannot be
# recorded within the grace period are left to the expiry of their leases.

# Attempts whose record is not durable yet: with those under way, the most that a crash can leave in doubt.
MAX_UNRECORDED: Final = 500
# A batch is bounded so that one commit stays short; a result is at most 2 KB.
BATCH_ITEMS: Final = 256

# Log event and metric label of a result.
RESULT_NAMES: Final = {
    webhook_deliveries.State.SUCCEEDED: ("webhook_delivered", "succeeded"),
    webhook_deliveries.State.WAITING: ("webhook_retry_scheduled", "retried"),
    webhook_deliveries.State.FAILED: ("webhook_failed", "failed"),
}


class CompletedAttempt(msgspec.Struct, frozen=True):
    """A finished attempt and the new state of its delivery."""

    claimed: webhook_deliveries.Claimed
    webhook: webhooks.Webhook
    result: webhook_deliveries.DeliveryUpdate
    attempt: webhook_deliveries.Attempt


async def record(tx: store.Transaction, ended: Sequence[CompletedAttempt]) -> Sequence[bool]:
    """Store the results; False for those whose worker had lost the lease."""
    recorded = await webhook_deliveries.record(tx, [one.result for one in ended])
    await webhook_deliveries.insert_attempts(tx, [one.attempt for one in ended if one.result.key in recorded])
    return [one.result.key in recorded for one in ended]


class Recorder:
    """Records the results of one worker, and retries until it succeeds."""

    def __init__(self, ctx: context.Context, *, worker: str, wake: Callable[[], None], log: logs.Logger) -> None:
        self._ctx = ctx
        self._worker = worker
        self._wake = wake
        self._log = log
        self._health = EndpointHealth(ctx, log=log)
        self._schedule = ctx.settings.webhooks.retry_seconds
        self._commits: group_commit.GroupCommit[CompletedAttempt, bool] = group_commit.GroupCommit(
            ctx.store,
            record,
            max_items=BATCH_ITEMS,
            max_waiting=ctx.settings.limits.accept_waiting,
            wait_seconds=ctx.settings.limits.accept_seconds,
        )
        self._retrying_commits: group_commit.RetryingCommits[CompletedAttempt, bool] = group_commit.RetryingCommits(
            self._commits, settled=self._settled, refused=self._refused
        )

    @property
    def is_full(self) -> bool:
        """Whether too many results wait, or one that the database has refused."""
        return self._retrying_commits.waiting >= MAX_UNRECORDED or self._retrying_commits.is_retrying

    def record_attempt(
        self, claimed: webhook_deliveries.Claimed, webhook: webhooks.Webhook, attempted: webhook_attempt.AttemptResult
    ) -> None:
        """Submit the record of an attempt that has just ended."""
        now = self._ctx.clock()
        state, wait = self._next_state(claimed, attempted)
        result = webhook_deliveries.DeliveryUpdate(
            key=claimed.key,
            worker=self._worker,
            attempt_count=claimed.attempt_count,
            url=webhook.url,
            state=state,
            due_at=now + wait,
            ended_at=None if state is webhook_deliveries.State.WAITING else now,
        )
        attempt = webhook_attempt.attempt_row(claimed.key, claimed.attempt_count, attempted)
        self._retrying_commits.submit(CompletedAttempt(claimed, webhook, result, attempt))

    async def close(self, *, seconds: float) -> None:
        """Wait until everything is recorded, at most this long."""
        if left := await self._retrying_commits.close(seconds=seconds):
            self._log.warning("webhook_results_abandoned", results=left)
        await self._commits.close()
        await self._health.close(seconds=seconds)

    def _next_state(
        self, claimed: webhook_deliveries.Claimed, attempted: webhook_attempt.AttemptResult
    ) -> tuple[webhook_deliveries.State, int]:
        """The state of the delivery after this attempt, and the delay before the next one."""
        if attempted.response.succeeded:
            return webhook_deliveries.State.SUCCEEDED, 0
        random_fraction = random.random()  # noqa: S311 - jitter
        wait = webhook_schedule.delay(self._schedule, claimed.attempt_count, random_fraction=random_fraction)
        if wait is None:
            return webhook_deliveries.State.FAILED, 0
        return webhook_deliveries.State.WAITING, wait

    def _settled(self, ended: CompletedAttempt, outcome: bool | Exception) -> None:  # noqa: FBT001 - a result of `record`
        if isinstance(outcome, Exception):
            # A bug. The lease expires, and the event is sent again.
            self._log.error("webhook_result_recording_failed", delivery_id=ended.claimed.id, exc_info=outcome)
        else:
            self._log_result(ended, is_recorded=outcome)
        if self.is_full:  # this result still counts
            self._wake()

    def _refused(self, waiting: int, error: errors.PostroadError) -> None:
        self._log.warning("webhook_result_recording_deferred", results=waiting, error=error.code)

    def _observe(self, ended: CompletedAttempt) -> None:
        # What we interrupted says nothing about the endpoint.
        if not (ended.attempt.error or "").startswith(webhook_client.FailureCode.INTERRUPTED):
            succeeded = ended.result.state is webhook_deliveries.State.SUCCEEDED
            self._health.observe(ended.webhook, succeeded=succeeded, at=ended.attempt.started_at)

    def _log_result(self, ended: CompletedAttempt, *, is_recorded: bool) -> None:
        claimed, attempt = ended.claimed, ended.attempt
        event, result = RESULT_NAMES[ended.result.state]
        if is_recorded:
            self._ctx.metrics.webhook_attempts.add(result)
            self._ctx.metrics.webhook_seconds.observe(attempt.duration / times.SECOND)
            self._observe(ended)
        self._log.info(
            event if is_recorded else "webhook_result_late",
            delivery_id=claimed.id,
            event_type=claimed.event_type,
            message_id=claimed.message_id,
            status_code=attempt.status_code,
            error=attempt.error,
            attempt=attempt.number,
        )


STOPPED: Final = f"{webhook_client.FailureCode.INTERRUPTED}: the service stopped before the endpoint responded"
INTERNAL_ERROR: Final = f"{webhook_client.FailureCode.INTERRUPTED}: internal error; the service log has the details"


class Claim(msgspec.Struct, frozen=True):
    """A delivery that this worker holds, with its endpoint and secrets."""

    claimed: webhook_deliveries.Claimed
    webhook: webhooks.Webhook
    secrets: Sequence[webhooks.Secret]


class Attempter:
    """Makes attempts, one per slot."""

    def __init__(
        self,
        ctx: context.Context,
        slots: webhook_schedule.ConcurrencyBudget,
        results: Recorder,
        *,
        clock: Callable[[], float],
        wake: Callable[[], None],
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._budget = slots
        self._recorder = results
        self._clock = clock
        self._wake = wake
        self._log = log
        self._in_flight: set[asyncio.Task[None]] = set()
        # Whether deliveries wait for a slot: then the end of an attempt wakes the dispatcher.
        self.has_waiting = False

    def begin(self, claim: Claim, slot: webhook_schedule.Slot) -> None:
        """Start an attempt, which returns the slot."""
        task = asyncio.get_running_loop().create_task(self._attempt(claim, slot))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)

    async def finish(self, *, grace_seconds: float) -> None:
        """Wait for attempts within the grace period, and cancel the rest."""
        if not self._in_flight:
            return
        _, late = await asyncio.wait(self._in_flight, timeout=grace_seconds)
        if late:
            self._log.warning("webhook_grace_period_exceeded", attempts=len(late))
            for task in late:
                task.cancel()
            await asyncio.wait(late)

    async def _attempt(self, claim: Claim, slot: webhook_schedule.Slot) -> None:
        self._ctx.metrics.webhook_connections.change(1)
        self._budget.begin(slot, now=self._clock())
        started_at = self._ctx.clock()
        try:
            attempted = await self._send(claim)
        except asyncio.CancelledError:
            self._recorder.record_attempt(claim.claimed, claim.webhook, self._interrupted(started_at, STOPPED))
            raise
        except Exception:  # noqa: BLE001 - logged; other attempts go on
            self._log.exception("webhook_attempt_failed", delivery_id=claim.claimed.id)
            self._recorder.record_attempt(claim.claimed, claim.webhook, self._interrupted(started_at, INTERNAL_ERROR))
        else:
            self._recorder.record_attempt(claim.claimed, claim.webhook, attempted)
        finally:
            self._ctx.metrics.webhook_connections.change(-1)
            self._budget.end(slot, now=self._clock())
            if self.has_waiting:
                self.has_waiting = False
                self._wake()

    async def _send(self, claim: Claim) -> webhook_attempt.AttemptResult:
        secrets = [webhook_attempt.decrypt_secret(self._ctx, secret) for secret in claim.secrets]
        claimed = claim.claimed
        return await webhook_attempt.attempt(
            self._ctx, claim.webhook, event_id=claimed.event_id, secrets=secrets, body=claimed.body
        )

    def _interrupted(self, started_at: int, error: str) -> webhook_attempt.AttemptResult:
        return webhook_attempt.AttemptResult(
            started_at, self._ctx.clock() - started_at, webhook_client.WebhookResponse(error=error)
        )
