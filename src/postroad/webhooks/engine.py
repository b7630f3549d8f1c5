"""The webhook engine: claims deliveries endpoint by endpoint under a lease, fairly, and has them attempted."""

import asyncio
import collections
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from postroad import context
from postroad.concurrency import poll_loop
from postroad.model.events import webhook_schedule
from postroad.model.units import times
from postroad.network import hostname
from postroad.network.http import guarded_client as webhook_client
from postroad.services.webhooks import listeners
from postroad.services.webhooks import signed_requests as webhook_attempt
from postroad.storage.engine import store
from postroad.storage.webhook import webhook_deliveries, webhooks
from postroad.telemetry import logs
from postroad.webhooks import attempter

# Which deliveries are next: endpoint after endpoint, as many of each as its account has slots.
#
# Only what can begin at once is claimed, so every claim is an attempt. URL and secrets are read in the same
# transaction: no event goes to a URL that was changed before. The walk continues after the endpoints that were served
# last. Within a step new accounts come first, then those that have waited longest. A step whose accounts have no slots
# claims nothing, and the walk goes on, so that every endpoint gets its turn.

# Endpoints examined in one step: a few microseconds each.
MAX_ENDPOINTS_PER_STEP: Final = 500
# Pause per endpoint examined without result, four times its cost: a long list of disabled endpoints, or of endpoints
# without a slot, does not become a busy loop.
IDLE_SECONDS_PER_ENDPOINT: Final = 0.000_02
# Rows promoted in one step: the transaction stays short.
MAX_PROMOTIONS_PER_STEP: Final = 1_000
WORKER_LOST: Final = (
    f"{webhook_client.FailureCode.INTERRUPTED}: the worker was lost before it could record the response"
)

Plan = Mapping[str, Sequence[webhook_schedule.Slot]]  # by endpoint


class ClaimedBatch(msgspec.Struct, frozen=True):
    """What one step has claimed."""

    claims: Sequence[attempter.Claim] = ()
    lease_until: int = 0
    promoted: Sequence[webhook_deliveries.Promoted] = ()


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
    """Claims due deliveries and starts their attempts."""

    def __init__(
        self,
        ctx: context.Context,
        slots: webhook_schedule.ConcurrencyBudget,
        attempts: attempter.Attempter,
        results: attempter.Recorder,
        *,
        worker: str,
        clock: Callable[[], float],
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._budget = slots
        self._attempter = attempts
        self._recorder = results
        self._worker = worker
        self._clock = clock
        self._log = log
        self._attempts = webhook_schedule.attempts(ctx.settings.webhooks.retry_seconds)
        self._lease = ctx.settings.webhooks.lease_seconds * times.SECOND
        self._lease_clock = times.LeaseClock(self._lease)
        self._cursor = EndpointCursor()
        self._idle_endpoints = 0
        self._is_stopping = False

    def stop(self) -> None:
        """Begin nothing more; what is being claimed is released."""
        self._is_stopping = True

    async def step(self) -> float | None:
        """Claim what can begin now; after a round that found nothing, returns how long to pause."""
        if self._is_stopping or not self._has_room():
            return 0.0
        now = self._ctx.clock()
        async with self._ctx.store.looking_up() as tx:
            is_due = await webhook_deliveries.is_due(tx, now=now, leases_until=self._leases_until(now))
            found = await webhook_deliveries.endpoints(tx, after=self._cursor.after, limit=MAX_ENDPOINTS_PER_STEP)
            enabled = await webhooks.enabled(tx, found)
        await self._expire(enabled, now=now)
        # The events of a listener are fetched.
        plan = self._plan({key: webhook for key, webhook in enabled.items() if not webhook.is_listener})
        batch = await self._claim(plan, now=now, is_due=is_due) if plan or is_due else ClaimedBatch()
        self._log_lost(batch.promoted)
        await self._begin(batch, plan)
        return self._advance(found, has_found_work=bool(batch.claims or batch.promoted))

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
                claimed = await webhook_deliveries.claim(tx, wanted, lease_until=lease_until, worker=self._worker)
                claims = await self._add_secrets(tx, claimed, now=now)
        except BaseException:
            for slots in plan.values():
                self._budget.release(slots)
            raise
        return ClaimedBatch(claims, lease_until, promoted)

    async def _promote(self, tx: store.Transaction, *, now: int) -> list[webhook_deliveries.Promoted]:
        """Make due deliveries ready. An attempt of a lost worker is recorded: it counts."""
        promoted = await webhook_deliveries.promote(
            tx, now=now, attempts=self._attempts, limit=MAX_PROMOTIONS_PER_STEP, leases_until=self._leases_until(now)
        )
        await webhook_deliveries.insert_attempts(
            tx, [self._lost_attempt(row) for row in promoted if row.worker is not None]
        )
        return promoted

    async def _add_secrets(
        self, tx: store.Transaction, claimed: Sequence[webhook_deliveries.Claimed], *, now: int
    ) -> list[attempter.Claim]:
        """Add endpoint and secrets to claims. Those without an enabled endpoint are released."""
        enabled = await webhooks.enabled(tx, {row.webhook_id for row in claimed})
        secrets: dict[str, list[webhooks.Secret]] = collections.defaultdict(list)
        for secret in await webhooks.secrets(tx, list(enabled), now=now):
            secrets[secret.webhook_id].append(secret)
        gone = [row.key for row in claimed if row.webhook_id not in secrets]
        if gone:
            await webhook_deliveries.release(tx, gone, worker=self._worker)
        return [
            attempter.Claim(row, enabled[row.webhook_id], secrets[row.webhook_id])
            for row in claimed
            if row.webhook_id in secrets
        ]

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

    async def _release(self, keys: Sequence[webhook_deliveries.Key]) -> None:
        try:
            async with self._ctx.store.transaction() as tx:
                await webhook_deliveries.release(tx, keys, worker=self._worker)
        except store.UNAVAILABLE as error:
            # They are claimed again when the lease expires.
            self._log.warning("webhook_lease_release_failed", deliveries=len(keys), error=error.message)

    def _lost_attempt(self, row: webhook_deliveries.Promoted) -> webhook_deliveries.Attempt:
        # Its duration is unknown.
        attempted = webhook_attempt.AttemptResult(
            row.due_at - self._lease, duration=0, response=webhook_client.WebhookResponse(error=WORKER_LOST)
        )
        return webhook_attempt.attempt_row((row.account_id, row.webhook_id, row.id), row.attempt_count, attempted)

    def _log_lost(self, promoted: Sequence[webhook_deliveries.Promoted]) -> None:
        for row in promoted:
            if row.worker is not None:
                has_failed = row.state == webhook_deliveries.State.FAILED
                state = webhook_deliveries.State.FAILED if has_failed else webhook_deliveries.State.WAITING
                event, result = attempter.RESULT_NAMES[state]
                self._ctx.metrics.webhook_attempts.add(result)
                self._log.warning(event, delivery_id=row.id, error=WORKER_LOST, attempt=row.attempt_count)


ERROR_BACKOFF_SECONDS: Final = 1.0


class Engine:
    """Webhooks in one process."""

    def __init__(self, ctx: context.Context, *, log: logs.Logger) -> None:
        settings = ctx.settings.webhooks
        clock = asyncio.get_running_loop().time
        worker = f"{hostname.process_name()}:{secrets.token_hex(4)}"
        slots = webhook_schedule.ConcurrencyBudget(
            slots=settings.connections, per_account=settings.connections_per_account
        )
        self._ctx = ctx
        self._log = log
        self._recorder = attempter.Recorder(ctx, worker=worker, wake=ctx.webhook_wakeup.set, log=log)
        self._attempter = attempter.Attempter(
            ctx, slots, self._recorder, clock=clock, wake=ctx.webhook_wakeup.set, log=log
        )
        self._dispatcher = Dispatcher(ctx, slots, self._attempter, self._recorder, worker=worker, clock=clock, log=log)
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
            grace = poll_loop.GracePeriod(self._ctx.settings.webhooks.grace_seconds)
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
                    self._ctx.webhook_wakeup, milliseconds=self._ctx.settings.webhooks.poll_milliseconds
                )
