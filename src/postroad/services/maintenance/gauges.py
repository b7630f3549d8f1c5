"""What the store knows and metrics show: how much waits, for how long, and which pools hold mail back.

Read when somebody asks, and at the most every ten seconds. The look walks through all that waits, mail and webhooks:
after a long one it rests twenty times as long, so that a queue of millions costs the store a twentieth of its time at
the most.
"""

import asyncio
import collections
import time
from collections.abc import Mapping, Sequence
from typing import Final

from postroad import errors
from postroad.model import times
from postroad.services import context
from postroad.services.queue import inspection
from postroad.storage import provider_queues, queue_views, webhook_views
from postroad.telemetry import metrics

MIN_REFRESH_SECONDS: Final = 10.0
REST_FACTOR: Final = 20
# Shorter than the ten seconds that Prometheus waits for an answer.
TIMEOUT_SECONDS: Final = 5.0


class Gauges:
    """The last look at the store. One that fails leaves the numbers out, and says so by `postroad_store_up`."""

    def __init__(self) -> None:
        self._valid_until = float("-inf")
        self._turn = asyncio.Lock()

    async def text(self, ctx: context.Context) -> bytes:
        """What Prometheus reads: these, and everything that was counted."""
        await self.refresh(ctx)
        return ctx.metrics.render()

    async def refresh(self, ctx: context.Context) -> None:
        """Look, unless the last look is good enough."""
        async with self._turn:
            began = time.monotonic()
            if began < self._valid_until:
                return
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    await _refresh(ctx)
            except (errors.PostroadError, TimeoutError):
                for gauge in _gauges(ctx.metrics):
                    gauge.replace({})
                ctx.metrics.store_up.replace({(): 0})
            now = time.monotonic()
            self._valid_until = now + max(MIN_REFRESH_SECONDS, REST_FACTOR * (now - began))


def _gauges(shown: metrics.Metrics) -> Sequence[metrics.Gauge]:
    """Those that the store knows."""
    mail = (shown.queue, shown.oldest, shown.overdue, shown.pools)
    return (*mail, shown.webhook_backlog, shown.webhook_overdue)


async def _refresh(ctx: context.Context) -> None:
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        counts = await queue_views.counts(tx, queue_views.Filter())
        told = await provider_queues.heard_since(tx, now - inspection.ALIVE_MICROSECONDS)
        events = await webhook_views.counts(tx)
    shown, ready = ctx.metrics, counts.get(queue_views.READY)
    shown.queue.replace({(state,): counts[state].recipients if state in counts else 0 for state in queue_views.STATES})
    oldest = min((count.queued_at for count in counts.values()), default=now)
    shown.oldest.replace({(): max(0, now - oldest) / times.SECOND})
    shown.overdue.replace({(): max(0, now - ready.due_at) / times.SECOND if ready else 0})
    closed = collections.Counter((metrics.provider_label(pool.name), pool.state) for pool in told)
    shown.pools.replace({labels: float(number) for labels, number in closed.items()})
    _show_webhooks(shown, events, now=now)
    shown.store_up.replace({(): 1})


def _show_webhooks(shown: metrics.Metrics, counts: Mapping[str, webhook_views.Count], *, now: int) -> None:
    ready = counts.get(webhook_views.READY)
    shown.webhook_backlog.replace(
        {(state,): counts[state].deliveries if state in counts else 0 for state in webhook_views.STATES}
    )
    shown.webhook_overdue.replace({(): max(0, now - ready.due_at) / times.SECOND if ready else 0})
