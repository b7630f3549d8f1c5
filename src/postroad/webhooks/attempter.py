"""The attempts under way: each is a task that holds a slot and ends in a result.

An attempt that a stop or a bug interrupts is recorded as interrupted: it may have reached the endpoint, so it counts,
and the next one follows the schedule.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from postroad.model import webhook_concurrency
from postroad.services import context
from postroad.services.webhooks import attempt as webhook_attempt
from postroad.services.webhooks import client as webhook_client
from postroad.services.webhooks import signing_secrets
from postroad.storage import webhook_deliveries, webhooks
from postroad.telemetry import logs
from postroad.webhooks import recorder

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
        slots: webhook_concurrency.ConcurrencyBudget,
        results: recorder.Recorder,
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

    def begin(self, claim: Claim, slot: webhook_concurrency.Slot) -> None:
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

    async def _attempt(self, claim: Claim, slot: webhook_concurrency.Slot) -> None:
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
        secrets = [signing_secrets.decrypt(self._ctx, secret) for secret in claim.secrets]
        claimed = claim.claimed
        return await webhook_attempt.attempt(
            self._ctx, claim.webhook, event_id=claimed.event_id, secrets=secrets, body=claimed.body
        )

    def _interrupted(self, started_at: int, error: str) -> webhook_attempt.AttemptResult:
        return webhook_attempt.AttemptResult(
            started_at, self._ctx.clock() - started_at, webhook_client.WebhookResponse(error=error)
        )
