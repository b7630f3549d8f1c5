"""The webhook engine: claims deliveries endpoint by endpoint under a lease, fairly; signs, posts and records.

A result is never dropped: while the database is unavailable it is kept and submitted again. How many may wait is
bounded; beyond that nothing more is claimed (`is_full`), so that a crash leaves few in doubt. Nor is anything claimed
while a refused result waits: otherwise its own worker might find the lease expired and send the event again. A result
counts only while its lease is valid: a later one is only logged. Only a stop ends the waiting: results that cannot be
recorded within the grace period are left to the expiry of their leases.
"""

import asyncio
import collections
import random
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad import context, errors, extensions
from postroad.concurrency import poll_loop
from postroad.model.events import event_formats, webhook_schedule
from postroad.model.units import times
from postroad.network import hostname
from postroad.network.http import guarded_client
from postroad.services.webhooks import endpoints, listeners, signed_requests
from postroad.storage.engine import group_commit, store
from postroad.storage.mail import webhooks
from postroad.telemetry import logs


class EndpointHealth:
    """Judges endpoints by their attempts: starts notes, and waits for them at the end."""

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


# Attempts whose record is not durable yet: with those under way, the most that a crash can leave in doubt.
MAX_UNRECORDED: Final = 500
# A batch is bounded so that one commit stays short; a result is at most 2 KB.
BATCH_ITEMS: Final = 256

# Log event and metric label of a result.
RESULT_NAMES: Final = {
    webhooks.State.SUCCEEDED: ("webhook_delivered", "succeeded"),
    webhooks.State.WAITING: ("webhook_retry_scheduled", "retried"),
    webhooks.State.FAILED: ("webhook_failed", "failed"),
}


class CompletedAttempt(msgspec.Struct, frozen=True):
    """A finished attempt and the new state of its delivery."""

    claimed: webhooks.Claimed
    webhook: webhooks.Webhook
    result: webhooks.DeliveryUpdate
    attempt: webhooks.Attempt


async def record(tx: store.Transaction, ended: Sequence[CompletedAttempt]) -> Sequence[bool]:
    """Store the results; False for those whose worker had lost the lease."""
    recorded = await webhooks.record(tx, [attempt.result for attempt in ended])
    await webhooks.insert_attempts(tx, [attempt.attempt for attempt in ended if attempt.result.key in recorded])
    return [attempt.result.key in recorded for attempt in ended]


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
            max_waiting=ctx.settings.testing.accept_waiting,
            wait_seconds=ctx.settings.testing.accept_seconds,
        )
        self._retrying_commits: group_commit.RetryingCommits[CompletedAttempt, bool] = group_commit.RetryingCommits(
            self._commits, settled=self._settled, refused=self._refused
        )

    @property
    def is_full(self) -> bool:
        """Whether too many results wait, or one that the database has refused."""
        return self._retrying_commits.waiting >= MAX_UNRECORDED or self._retrying_commits.is_retrying

    def record_attempt(
        self, claimed: webhooks.Claimed, webhook: webhooks.Webhook, attempted: signed_requests.AttemptResult
    ) -> None:
        now = self._ctx.clock()
        state, wait = self._next_state(claimed, attempted)
        result = webhooks.DeliveryUpdate(
            key=claimed.key,
            worker=self._worker,
            attempt_count=claimed.attempt_count,
            url=webhook.url,
            state=state,
            due_at=now + wait,
            ended_at=None if state is webhooks.State.WAITING else now,
        )
        attempt = signed_requests.attempt_row(claimed.key, claimed.attempt_count, attempted)
        self._retrying_commits.submit(CompletedAttempt(claimed, webhook, result, attempt))

    async def close(self, *, seconds: float) -> None:
        """Wait until everything is recorded, at most this long."""
        if left := await self._retrying_commits.close(seconds=seconds):
            self._log.warning("webhook_results_abandoned", results=left)
        await self._commits.close()
        await self._health.close(seconds=seconds)

    def _next_state(
        self, claimed: webhooks.Claimed, attempted: signed_requests.AttemptResult
    ) -> tuple[webhooks.State, int]:
        """The state of the delivery after this attempt, and the delay before the next one."""
        if attempted.response.succeeded:
            return webhooks.State.SUCCEEDED, 0
        random_fraction = random.random()  # noqa: S311 - jitter
        wait = webhook_schedule.delay(self._schedule, claimed.attempt_count, random_fraction=random_fraction)
        if wait is None:
            return webhooks.State.FAILED, 0
        return webhooks.State.WAITING, wait

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
        if not (ended.attempt.error or "").startswith(guarded_client.FailureCode.INTERRUPTED):
            succeeded = ended.result.state is webhooks.State.SUCCEEDED
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


STOPPED: Final = f"{guarded_client.FailureCode.INTERRUPTED}: the service stopped before the endpoint responded"
INTERNAL_ERROR: Final = f"{guarded_client.FailureCode.INTERRUPTED}: internal error; the service log has the details"


class Claim(msgspec.Struct, frozen=True):
    """A delivery that this worker holds, with its endpoint and secrets."""

    claimed: webhooks.Claimed
    webhook: webhooks.Webhook
    secrets: Sequence[webhooks.Secret]


class Attempter:
    """Makes attempts, one per slot."""

    def __init__(
        self,
        ctx: context.Context,
        budget: webhook_schedule.ConcurrencyBudget,
        recorder: Recorder,
        *,
        clock: Callable[[], float],
        wake: Callable[[], None],
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._budget = budget
        self._recorder = recorder
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

    async def _send(self, claim: Claim) -> signed_requests.AttemptResult:
        secrets = [signed_requests.decrypt_secret(self._ctx, secret) for secret in claim.secrets]
        claimed = claim.claimed
        return await signed_requests.attempt(
            self._ctx, claim.webhook, event_id=claimed.event_id, secrets=secrets, body=claimed.body
        )

    def _interrupted(self, started_at: int, error: str) -> signed_requests.AttemptResult:
        return signed_requests.AttemptResult(
            started_at, self._ctx.clock() - started_at, guarded_client.WebhookResponse(error=error)
        )


# Endpoints examined in one step: a few microseconds each.
MAX_ENDPOINTS_PER_STEP: Final = 500
# An attempt takes at most 5 s, and then its result is recorded.
MAX_GRACE_SECONDS: Final = 10
# Pause per endpoint examined without result, four times its cost: a long list of disabled endpoints, or of endpoints
# without a slot, does not become a busy loop.
IDLE_SECONDS_PER_ENDPOINT: Final = 0.000_02
# Rows promoted in one step: the transaction stays short.
MAX_PROMOTIONS_PER_STEP: Final = 1_000
WORKER_LOST: Final = (
    f"{guarded_client.FailureCode.INTERRUPTED}: the worker was lost before it could record the response"
)

Plan = Mapping[str, Sequence[webhook_schedule.Slot]]  # by endpoint


class ClaimedBatch(msgspec.Struct, frozen=True):
    """What one step has claimed."""

    claims: Sequence[Claim] = ()
    lease_until: int = 0
    promoted: Sequence[webhooks.Promoted] = ()


@dataclass(slots=True)
class EndpointCursor:
    """The position of the walk. A round ends where work was last found."""

    after: str = ""
    started_after: str = field(default="", init=False)
    has_wrapped: bool = field(default=False, init=False)

    def advance(self, found: Sequence[str], *, has_found_work: bool) -> bool:
        """Move past what was just examined; False when a whole round found nothing."""
        self.after = found[-1] if len(found) >= MAX_ENDPOINTS_PER_STEP else ""
        if has_found_work:
            self.started_after, self.has_wrapped = self.after, False
            return True
        is_at_end = not self.after
        is_round = self.has_wrapped and (is_at_end or self.after >= self.started_after)
        if is_round or (is_at_end and not self.started_after):
            self.after, self.has_wrapped = self.started_after, False
            return False
        self.has_wrapped = self.has_wrapped or is_at_end
        return True


class Dispatcher:
    """Chooses endpoint after endpoint, claims as many deliveries of each as its account has slots, and starts attempts.

    Only what can begin at once is claimed, so every claim is an attempt. URL and secrets are read in the same
    transaction: no event goes to a URL that was changed before. The walk continues after the endpoints that were served
    last. Within a step new accounts come first, then those that have waited longest. A step whose accounts have no
    slots claims nothing, and the walk goes on, so that every endpoint gets its turn.
    """

    def __init__(
        self,
        ctx: context.Context,
        budget: webhook_schedule.ConcurrencyBudget,
        attempter: Attempter,
        recorder: Recorder,
        *,
        worker: str,
        clock: Callable[[], float],
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._budget = budget
        self._attempter = attempter
        self._recorder = recorder
        self._worker = worker
        self._clock = clock
        self._log = log
        self._max_attempts = webhook_schedule.attempts(ctx.settings.webhooks.retry_seconds)
        self._lease = ctx.settings.testing.lease_seconds * times.SECOND // 2  # an attempt takes at most 5 s
        self._lease_clock = times.LeaseClock(self._lease)
        self._cursor = EndpointCursor()
        self._idle_endpoints = 0
        self._is_stopping = False
        # Of endpoints with events, those that no extension has.
        self._missing_formats: set[str] = set()

    def stop(self) -> None:
        """Begin nothing more; what is being claimed is released."""
        self._is_stopping = True

    async def step(self) -> float | None:
        """Claim what can begin now; after a round that found nothing, returns how long to pause."""
        if self._is_stopping or not self._has_room():
            return 0.0
        now = self._ctx.clock()
        async with self._ctx.store.looking_up() as tx:
            is_due = await webhooks.is_due(tx, now=now, leases_until=self._leases_until(now))
            found = await webhooks.ready_endpoints(tx, after=self._cursor.after, limit=MAX_ENDPOINTS_PER_STEP)
            enabled = await webhooks.enabled(tx, found)
        await self._expire(enabled, now=now)
        # The events of a listener are fetched.
        plan = self._plan({key: row for key, row in enabled.items() if not row.is_listener and self._has_format(row)})
        batch = await self._claim(plan, now=now, is_due=is_due) if plan or is_due else ClaimedBatch()
        self._log_lost(batch.promoted)
        await self._begin(batch, plan)
        return self._advance(found, has_found_work=bool(batch.claims or batch.promoted))

    def _has_format(self, webhook: webhooks.Webhook) -> bool:
        """Whether its events can be written; otherwise they wait, as those of a disabled endpoint do."""
        if webhook.format == event_formats.OWN or webhook.format in self._ctx.event_formats:
            return True
        if webhook.format not in self._missing_formats:
            self._missing_formats.add(webhook.format)
            self._log.warning(
                "webhook_format_missing",
                format=webhook.format,
                detail=extensions.how_to_install(f"format {webhook.format}"),
            )
        return False

    async def _expire(self, enabled: Mapping[str, webhooks.Webhook], *, now: int) -> None:
        """Remove listeners that have events which nobody has asked for."""
        for webhook in enabled.values():
            if listeners.is_expired(webhook, now=now):
                await listeners.expire(self._ctx, webhook)

    def _advance(self, found: Sequence[str], *, has_found_work: bool) -> float | None:
        self._idle_endpoints = 0 if has_found_work else self._idle_endpoints + len(found)
        if self._cursor.advance(found, has_found_work=has_found_work):
            return None
        looked, self._idle_endpoints = self._idle_endpoints, 0
        return looked * IDLE_SECONDS_PER_ENDPOINT

    def _leases_until(self, now: int) -> int:
        return self._lease_clock.expired_before(now=now, monotonic=self._clock())

    def _has_room(self) -> bool:
        """Whether anything can begin. The recorder wakes the dispatcher when it has room again."""
        if not self._budget.free:
            self._attempter.has_waiting = True
        return self._budget.free > 0 and not self._recorder.is_full

    def _plan(self, enabled: Mapping[str, webhooks.Webhook]) -> Plan:
        """Places for the endpoints: one for each account in turn, and again, until nobody can have more.

        Endpoints of one account share its slots, each getting the next one, so that ten get no more than one does.
        """
        now = self._clock()
        self._budget.mark_slow(now=now)
        endpoints_of: dict[str, list[str]] = collections.defaultdict(list)
        for webhook in enabled.values():
            endpoints_of[webhook.account_id].append(webhook.id)
        plan: dict[str, list[webhook_schedule.Slot]] = collections.defaultdict(list)
        candidates = self._budget.by_priority(endpoints_of)
        while candidates:
            slots = [slot for account_id in candidates if (slot := self._budget.take(account_id, now=now))]
            for slot in slots:
                endpoints = endpoints_of[slot.account_id]
                plan[endpoints[slot.number % len(endpoints)]].append(slot)
            candidates = [slot.account_id for slot in slots]
        if len(plan) < len(enabled):
            self._attempter.has_waiting = True
        return plan

    async def _claim(self, plan: Plan, *, now: int, is_due: bool) -> ClaimedBatch:
        wanted = [(webhook_id, len(slots)) for webhook_id, slots in plan.items()]
        lease_until = self._ctx.clock() + self._lease
        try:
            async with self._ctx.store.transaction() as tx:
                promoted = await self._promote(tx, now=now) if is_due else []
                claimed = await webhooks.claim(tx, wanted, lease_until=lease_until, worker=self._worker)
                claims = await self._add_secrets(tx, claimed, now=now)
        except BaseException:
            for slots in plan.values():
                self._budget.release(slots)
            raise
        return ClaimedBatch(claims, lease_until, promoted)

    async def _promote(self, tx: store.Transaction, *, now: int) -> list[webhooks.Promoted]:
        """Make due deliveries ready. An attempt of a lost worker is recorded: it counts."""
        promoted = await webhooks.promote(
            tx,
            now=now,
            attempts=self._max_attempts,
            limit=MAX_PROMOTIONS_PER_STEP,
            leases_until=self._leases_until(now),
        )
        await webhooks.insert_attempts(tx, [self._lost_attempt(row) for row in promoted if row.worker is not None])
        return promoted

    async def _add_secrets(
        self, tx: store.Transaction, claimed: Sequence[webhooks.Claimed], *, now: int
    ) -> list[Claim]:
        """Add endpoint and secrets to claims. Those without an enabled endpoint are released."""
        enabled = await webhooks.enabled(tx, {row.webhook_id for row in claimed})
        claimed = await self._translate(tx, claimed, enabled)
        secrets: dict[str, list[webhooks.Secret]] = collections.defaultdict(list)
        for secret in await webhooks.secrets(tx, list(enabled), now=now):
            secrets[secret.webhook_id].append(secret)
        gone = [row.key for row in claimed if row.webhook_id not in secrets]
        if gone:
            await webhooks.release(tx, gone, worker=self._worker)
        return [
            Claim(row, enabled[row.webhook_id], secrets[row.webhook_id]) for row in claimed if row.webhook_id in secrets
        ]

    async def _translate(
        self,
        tx: store.Transaction,
        claimed: Sequence[webhooks.Claimed],
        enabled: Mapping[str, webhooks.Webhook],
    ) -> list[webhooks.Claimed]:
        """Write events that waited for their extension; what the endpoint does not want in its format is no event."""
        written = []
        for row in claimed:
            webhook = enabled.get(row.webhook_id)
            if (
                webhook is None
                or webhook.format == event_formats.OWN
                or (event := event_formats.read_untranslated(row.body)) is None
            ):
                written.append(row)
            else:
                wanted = webhook.format_events.split()
                body = self._ctx.event_formats[webhook.format].body(event, wanted=wanted)
                if body is None:
                    await webhooks.drop(tx, row.key, worker=self._worker)
                else:
                    await webhooks.set_body(tx, row.key, body)
                    written.append(msgspec.structs.replace(row, body=body))
        return written

    async def _begin(self, batch: ClaimedBatch, plan: Plan) -> None:
        """Start each claim with its slot, and release the remaining slots."""
        left = {webhook_id: list(slots) for webhook_id, slots in plan.items()}
        # A process that stalled or waited for the database must not begin what another worker may soon claim.
        is_safe = self._ctx.clock() < batch.lease_until - self._lease // 2
        claims = batch.claims if is_safe and not self._is_stopping else ()
        for claim in claims:
            self._attempter.begin(claim, left[claim.claimed.webhook_id].pop())
        for slots in left.values():
            self._budget.release(slots)
        if len(claims) < len(batch.claims):
            await self._release([claim.claimed.key for claim in batch.claims])

    async def _release(self, keys: Sequence[webhooks.Key]) -> None:
        try:
            async with self._ctx.store.transaction() as tx:
                await webhooks.release(tx, keys, worker=self._worker)
        except store.UNAVAILABLE as error:
            # They are claimed again when the lease expires.
            self._log.warning("webhook_lease_release_failed", deliveries=len(keys), error=error.message)

    def _lost_attempt(self, row: webhooks.Promoted) -> webhooks.Attempt:
        # Its duration is unknown.
        attempted = signed_requests.AttemptResult(
            row.due_at - self._lease, duration=0, response=guarded_client.WebhookResponse(error=WORKER_LOST)
        )
        return signed_requests.attempt_row((row.account_id, row.webhook_id, row.id), row.attempt_count, attempted)

    def _log_lost(self, promoted: Sequence[webhooks.Promoted]) -> None:
        for row in promoted:
            if row.worker is not None:
                has_failed = row.state == webhooks.State.FAILED
                state = webhooks.State.FAILED if has_failed else webhooks.State.WAITING
                event, result = RESULT_NAMES[state]
                self._ctx.metrics.webhook_attempts.add(result)
                self._log.warning(event, delivery_id=row.id, error=WORKER_LOST, attempt=row.attempt_count)


ERROR_BACKOFF_SECONDS: Final = 1.0


class Engine:
    """Webhooks in one process."""

    def __init__(self, ctx: context.Context, *, log: logs.Logger) -> None:
        settings = ctx.settings.webhooks
        clock = asyncio.get_running_loop().time
        worker = f"{hostname.process_name()}:{secrets.token_hex(4)}"
        budget = webhook_schedule.ConcurrencyBudget(
            slots=settings.connections, per_account=settings.connections_per_account
        )
        self._ctx = ctx
        self._log = log
        self._recorder = Recorder(ctx, worker=worker, wake=ctx.webhook_wakeup.set, log=log)
        self._attempter = Attempter(ctx, budget, self._recorder, clock=clock, wake=ctx.webhook_wakeup.set, log=log)
        self._dispatcher = Dispatcher(ctx, budget, self._attempter, self._recorder, worker=worker, clock=clock, log=log)
        self._is_stopping = False

    async def run(self, stopping: asyncio.Event) -> None:
        """Deliver until stopped; then finish in order."""
        walk = asyncio.create_task(self._run())
        stop = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait([walk, stop], return_when=asyncio.FIRST_COMPLETED)
            if walk.done():
                walk.result()  # it has a bug, which the role reports
        finally:
            grace = poll_loop.GracePeriod(min(MAX_GRACE_SECONDS, self._ctx.settings.shutdown.grace_seconds))
            self._is_stopping = True
            self._dispatcher.stop()
            self._ctx.webhook_wakeup.set()
            await poll_loop.stop(walk, grace)
            await poll_loop.cancel(stop)
            await self._attempter.finish(grace_seconds=grace.remaining)
            await self._recorder.close(seconds=grace.remaining_for_recording)

    async def _run(self) -> None:
        """Claim work in a loop. After a database outage, retry a little later."""
        while not self._is_stopping:
            try:
                rest = await self._dispatcher.step()
            except store.UNAVAILABLE as error:
                self._log.warning("webhook_queue_unavailable", error=error.message)
                await asyncio.sleep(ERROR_BACKOFF_SECONDS)
                continue
            await poll_loop.pause(rest or 0.0)
            if rest is not None:
                await poll_loop.wait_for_work(
                    self._ctx.webhook_wakeup, milliseconds=self._ctx.settings.testing.poll_milliseconds
                )
