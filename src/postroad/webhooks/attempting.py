"""The attempts that are under way: each a task that holds a place, and ends in a result.

One that is cut off by a stop, or by a bug, is recorded as interrupted: it may have reached the receiver, so it counts,
and the next one follows by the schedule.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from postroad.model import shares
from postroad.services import context, receivers, telling, webhook_secrets
from postroad.storage import webhook_deliveries, webhooks
from postroad.telemetry import logs
from postroad.webhooks import recording

STOPPED: Final = f"{receivers.Code.INTERRUPTED}: the service stopped before the receiver had answered"
BROKEN: Final = f"{receivers.Code.INTERRUPTED}: the service made a mistake; its log says which"


@dataclass(frozen=True, slots=True)
class Claim:
    """A delivery that this worker holds, where it goes, and what signs it."""

    claimed: webhook_deliveries.Claimed
    url: str
    secrets: Sequence[webhooks.Secret]


class Attempting:
    """Makes attempts, as many at a time as there are places."""

    def __init__(
        self,
        ctx: context.Context,
        places: shares.Shares,
        results: recording.Recording,
        *,
        clock: Callable[[], float],
        wake: Callable[[], None],
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._shares = places
        self._recording = results
        self._clock = clock
        self._wake = wake
        self._log = log
        self._under_way: set[asyncio.Task[None]] = set()
        # Whether there was more to take than there were places: then the end of an attempt wakes the walk.
        self.is_awaited = False

    def begin(self, claim: Claim, place: shares.Place) -> None:
        """Make an attempt, which gives the place back."""
        task = asyncio.get_running_loop().create_task(self._attempt(claim, place))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def finish(self, *, grace_seconds: float) -> None:
        """Let attempts end in their time, and cut off those that do not."""
        if not self._under_way:
            return
        _, late = await asyncio.wait(self._under_way, timeout=grace_seconds)
        if late:
            self._log.warning("webhook_grace_time_over", attempts=len(late))
            for task in late:
                task.cancel()
            await asyncio.wait(late)

    async def _attempt(self, claim: Claim, place: shares.Place) -> None:
        self._ctx.metrics.webhook_connections.change(1)
        self._shares.begin(place, now=self._clock())
        started_at = self._ctx.clock()
        try:
            attempted = await self._tell(claim)
        except asyncio.CancelledError:
            self._recording.attempted(claim.claimed, claim.url, self._interrupted(started_at, STOPPED))
            raise
        except Exception:  # noqa: BLE001 - the log gets it, and the other attempts go on
            self._log.exception("webhook_attempt_broken", delivery_id=claim.claimed.id)
            self._recording.attempted(claim.claimed, claim.url, self._interrupted(started_at, BROKEN))
        else:
            self._recording.attempted(claim.claimed, claim.url, attempted)
        finally:
            self._ctx.metrics.webhook_connections.change(-1)
            self._shares.end(place, now=self._clock())
            if self.is_awaited:
                self.is_awaited = False
                self._wake()

    async def _tell(self, claim: Claim) -> telling.Attempted:
        secrets = [webhook_secrets.unseal(self._ctx, secret) for secret in claim.secrets]
        return await telling.attempt(self._ctx, url=claim.url, secrets=secrets, body=claim.claimed.body)

    def _interrupted(self, started_at: int, error: str) -> telling.Attempted:
        return telling.Attempted(started_at, self._ctx.clock() - started_at, receivers.Answer(error=error))
