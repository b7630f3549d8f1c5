"""Gauges read from the database: queue lengths, ages, provider queues that hold mail back, and sizes.

They are read on request, at most every ten seconds. A read scans everything that waits, mail and webhooks: it is
followed by a pause of twenty times its duration, so that a queue of millions costs the database at most a twentieth of
its time.
"""

import asyncio
import collections
import contextlib
import shutil
import time
from collections.abc import Mapping, Sequence
from typing import Final

from postroad import build_version, context, errors
from postroad.mail.accept import queue_limit
from postroad.model.delivery import providers
from postroad.model.units import times
from postroad.services.messages import queue_inspection
from postroad.services.operations import certificates
from postroad.storage.engine import open_store
from postroad.storage.mail import mail_counts, queue_views, webhooks
from postroad.storage.operations import processes, space
from postroad.storage.people import accounts
from postroad.telemetry import metrics

MIN_REFRESH_SECONDS: Final = 10.0
REST_FACTOR: Final = 20
# Shorter than the ten seconds after which Prometheus times out.
TIMEOUT_SECONDS: Final = 5.0


class Gauges:
    """The last values. A failed read leaves them out and sets `postroad_store_up` to 0."""

    def __init__(self) -> None:
        self._valid_until = float("-inf")
        self._turn = asyncio.Lock()

    async def text(self, ctx: context.Context) -> bytes:
        """The metrics text: these gauges and all counters."""
        await self.refresh(ctx)
        return ctx.metrics.render()

    async def refresh(self, ctx: context.Context) -> None:
        """Read the gauges, unless the last values are recent enough."""
        async with self._turn:
            began = time.monotonic()
            if began < self._valid_until:
                return
            # A full disk makes the database unavailable, so its free space is read first.
            await _show_disk(ctx)
            ctx.metrics.build_info.replace({(build_version.current(),): 1})
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
    mail = (shown.queue, shown.oldest, shown.overdue, shown.provider_queues)
    others = (shown.low_credits, shown.certificates, shown.database_bytes, shown.database_free_bytes)
    return (*mail, shown.webhook_backlog, shown.webhook_overdue, shown.stored_bytes, shown.near_quota, *others)


async def _refresh(ctx: context.Context) -> None:
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        counts = await queue_views.counts(tx, queue_views.Filter())
        statuses = await processes.queues_since(tx, now - queue_inspection.ALIVE_MICROSECONDS)
        events = await webhooks.delivery_counts(tx)
        low = await accounts.low_credit_count(tx, since_hour=mail_counts.hour_of(now) - accounts.LOW_CREDIT_HOURS)
        used = await space.read(tx)
    stored = await queue_limit.read_usage(ctx.store, ctx.settings)
    shown, ready = ctx.metrics, counts.get(queue_views.READY)
    shown.queue.replace({(state,): counts[state].recipients if state in counts else 0 for state in queue_views.STATES})
    oldest = min((count.queued_at for count in counts.values()), default=now)
    shown.oldest.replace({(): max(0, now - oldest) / times.SECOND})
    shown.overdue.replace({(): max(0, now - ready.due_at) / times.SECOND if ready else 0})
    closed = collections.Counter((providers.label_of(pool.name), pool.state) for pool in statuses if not pool.source)
    shown.provider_queues.replace({labels: float(number) for labels, number in closed.items()})
    shown.low_credits.replace({(): low if ctx.settings.credits.enabled else 0})
    _show_webhooks(shown, events, now=now)
    shown.stored_bytes.replace({("live",): sum(stored.live.values()), ("test",): sum(stored.test.values())})
    near = {account.account_id for account in queue_limit.near_quota(stored, ctx.settings)}
    shown.near_quota.replace({(): len(near)})
    shown.certificates.replace(await certificates.seconds_left(ctx))
    shown.database_bytes.replace({(): used.size})
    shown.database_free_bytes.replace({} if used.free is None else {(): used.free})
    shown.store_up.replace({(): 1})


async def _show_disk(ctx: context.Context) -> None:
    """The file system of the SQLite file; that of a PostgreSQL server is not visible from here."""
    folder = open_store.sqlite_folder(ctx.settings.database.url)
    sizes: list[dict[metrics.Labels, float]] = [{}, {}]
    with contextlib.suppress(OSError):
        if folder is not None:
            disk = await asyncio.to_thread(shutil.disk_usage, folder)
            sizes = [{(): disk.total}, {(): disk.free}]
    ctx.metrics.disk_bytes.replace(sizes[0])
    ctx.metrics.disk_free_bytes.replace(sizes[1])


def _show_webhooks(shown: metrics.Metrics, counts: Mapping[str, webhooks.Count], *, now: int) -> None:
    ready = counts.get(webhooks.READY)
    shown.webhook_backlog.replace(
        {(state,): counts[state].deliveries if state in counts else 0 for state in webhooks.STATES}
    )
    shown.webhook_overdue.replace({(): max(0, now - ready.due_at) / times.SECOND if ready else 0})
