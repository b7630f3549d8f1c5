"""A provider queue: all mail to one mailbox provider, with its own connections, rate and back-off.

Each connection has a worker. It takes job after job, waits a little for the next one, and closes; it also closes when
its connection has reached its message limit or the connection limit has shrunk. A provider queue takes only as many
jobs as it can soon send; the rest waits in the database.
"""

import asyncio
import collections
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from postroad import config
from postroad.delivery import attempter as delivery_attempter
from postroad.delivery import leases, message_loader, permits, recorder
from postroad.model import adaptive_rate
from postroad.model.bounces import disposition as bounces_disposition
from postroad.services import context
from postroad.storage import store
from postroad.telemetry import logs

# Jobs in memory for each connection: enough to keep it busy while the next claim is on its way to disk.
JOBS_PER_CONNECTION: Final = 16
# A slow provider queue holds only what it can send in this time, so that new mail is not far behind.
LOOKAHEAD_SECONDS: Final = 2
# After a bug or a database outage, repeating at once would not help.
ERROR_BACKOFF_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class DeliveryServices:
    """What all provider queues share."""

    ctx: context.Context
    held: leases.Leases
    message_loader: message_loader.MessageLoader
    attempter: delivery_attempter.Attempter
    recorder: recorder.Recorder
    permits: permits.Permits
    log: logs.Logger
    clock: Callable[[], float]
    # Called when a provider queue has free capacity.
    wake: Callable[[], None]


class ProviderQueue:
    """Jobs for one provider, and the workers that send them."""

    def __init__(self, name: str, limits: config.Provider, services: DeliveryServices) -> None:
        self.name = name
        self.adaptive_rate = adaptive_rate.AdaptiveRate(
            connections=limits.connections,
            messages_per_second=limits.messages_per_second,
            messages_per_connection=limits.messages_per_connection,
        )
        self.last_error = ""
        self._services = services
        self._jobs: collections.deque[message_loader.Job] = collections.deque()
        self._reserved = 0
        self._idle: dict[asyncio.Future[message_loader.Job | None], delivery_attempter.ConnectionSlot] = {}
        # Only workers that take jobs have a slot here; those that are closing are still in `_workers`.
        self._slots: set[delivery_attempter.ConnectionSlot] = set()
        self._workers: set[asyncio.Task[None]] = set()
        self._is_proven = False
        self._is_stopping = False
        is_named = name in config.Providers.__struct_fields__
        self._large = asyncio.Semaphore(
            message_loader.MAX_CONCURRENT_LARGE if is_named else message_loader.MAX_CONCURRENT_LARGE_PER_DESTINATION
        )

    @property
    def is_idle(self) -> bool:
        """Whether there are no workers and no jobs."""
        return not self._workers and not self._jobs and not self._reserved

    def capacity_left(self) -> int:
        """How many more jobs fit now; 0 until half is free, because small claims cost as much as large ones."""
        now = self._services.clock()
        if self.adaptive_rate.paused_until(now) is not None or self.adaptive_rate.wait(now) > LOOKAHEAD_SECONDS:
            return 0
        capacity = self._capacity()
        free = capacity - len(self._jobs) - self._reserved
        return free if free * 2 >= capacity else 0

    def _capacity(self) -> int:
        connections = self.adaptive_rate.allowed_connections()
        return min(
            connections * JOBS_PER_CONNECTION, max(connections, int(self.adaptive_rate.rate() * LOOKAHEAD_SECONDS))
        )

    def reserve(self, jobs: int) -> None:
        """Reserve capacity for jobs that are being prepared; `add` or `cancel_reserved` follows for each."""
        self._reserved += jobs

    def cancel_reserved(self, jobs: int) -> None:
        """Release reserved capacity."""
        self._reserved -= jobs

    def add(self, job: message_loader.Job) -> None:
        """Queue a job for which capacity was reserved."""
        self._reserved -= 1
        for waiting, slot in self._idle.items():
            if slot.fits(job.route, max_deliveries=self.adaptive_rate.messages_per_connection):
                del self._idle[waiting]
                waiting.set_result(job)
                return
        self._jobs.append(job)
        if not self._spawn_worker() and self._idle:
            # The connection limit is reached, and an idle connection goes to another host: its worker takes the job.
            waiting = next(iter(self._idle))
            del self._idle[waiting]
            waiting.set_result(self._jobs.popleft())

    def _spawn_worker(self) -> bool:
        """Start a worker, if there is a job and the connection limit allows it."""
        if not self._jobs or self._is_stopping or len(self._workers) >= self.adaptive_rate.allowed_connections():
            return False
        worker = asyncio.get_running_loop().create_task(self._work())
        self._workers.add(worker)
        worker.add_done_callback(self._worker_ended)
        return True

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        """Start another worker for jobs that arrived while this one was closing."""
        self._workers.discard(worker)
        if worker.cancelled():
            return
        if (problem := worker.exception()) is not None:
            self._services.log.error("worker_failed", provider_queue=self.name, exc_info=problem)
            asyncio.get_running_loop().call_later(ERROR_BACKOFF_SECONDS, self._spawn_worker)
        else:
            self._spawn_worker()

    def close(self) -> list[message_loader.Job]:
        """Begin nothing more; returns the jobs that were not begun."""
        self._is_stopping = True
        left = list(self._jobs)
        self._jobs.clear()
        for waiting in self._idle:
            waiting.set_result(None)
        self._idle.clear()
        return left

    async def finish(self) -> None:
        """Wait for deliveries under way."""
        if self._workers:
            await asyncio.wait(self._workers)

    def abort(self) -> None:
        """Close all connections at once; deliveries under way get a result that says so."""
        for slot in self._slots:
            slot.abort()

    async def _work(self) -> None:
        slot = delivery_attempter.ConnectionSlot()
        self._slots.add(slot)
        try:
            async with self._services.permits.acquire(proven=self._is_proven):
                self._services.ctx.metrics.connections.change(1)
                try:
                    while (job := await self._next_job(slot)) is not None:
                        await self._send(job, slot)
                    self._slots.discard(slot)
                    await slot.close()
                finally:
                    self._services.ctx.metrics.connections.change(-1)
        finally:
            self._slots.discard(slot)
            if slot.connection is not None:
                slot.connection.abort()

    async def _next_job(self, slot: delivery_attempter.ConnectionSlot) -> message_loader.Job | None:
        # A worker that ends returns its permit, so that other provider queues get their turn.
        is_exhausted = slot.is_exhausted(max_deliveries=self.adaptive_rate.messages_per_connection)
        if is_exhausted or len(self._slots) > self.adaptive_rate.allowed_connections():
            return None
        if self._jobs:
            return self._jobs.popleft()
        if slot.connection is None or not slot.connection.is_usable or self._is_stopping:
            return None
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[message_loader.Job | None] = loop.create_future()
        self._idle[waiting] = slot
        alarm = loop.call_later(self._services.ctx.settings.delivery.idle_seconds, self._end_idle_wait, waiting)
        try:
            return await waiting
        finally:
            alarm.cancel()
            self._idle.pop(waiting, None)

    def _end_idle_wait(self, waiting: asyncio.Future[message_loader.Job | None]) -> None:
        if self._idle.pop(waiting, None) is not None:
            waiting.set_result(None)

    async def _send(self, job: message_loader.Job, slot: delivery_attempter.ConnectionSlot) -> None:
        """Send one job and handle every error: a job lost here would wait until its lease expires."""
        try:
            if job.is_large:
                await self._send_large(job, slot)
            else:
                await self._send_prepared(job, slot)
        except store.UNAVAILABLE as error:
            self._services.log.warning("message_load_deferred", message_id=job.message[1], error=error.message)
            await self._release_later(job)
        except Exception:
            self._services.log.exception("delivery_failed", message_id=job.message[1])
            await self._services.recorder.record_unroutable(job.claims, message_loader.INTERNAL_ERROR)
        finally:
            self._services.message_loader.release(job)
        if self.capacity_left():
            self._services.wake()

    async def _send_large(self, job: message_loader.Job, slot: delivery_attempter.ConnectionSlot) -> None:
        """Send a large message. While all permits for large ones are taken, smaller jobs go on."""
        async with contextlib.AsyncExitStack() as permits_held:
            await permits_held.enter_async_context(self._large)
            try:
                async with asyncio.timeout(LOOKAHEAD_SECONDS):
                    await permits_held.enter_async_context(
                        self._services.message_loader.large.acquire(proven=self._is_proven)
                    )
            except TimeoutError:
                await self._services.held.release(job.keys)
                return
            await self._send_prepared(job, slot)

    async def _send_prepared(self, job: message_loader.Job, slot: delivery_attempter.ConnectionSlot) -> None:
        if not job.is_prepared and not await self._prepare(job):
            return
        if job.transaction is None:
            await self._services.recorder.record_unroutable(job.claims, job.failure)
            return
        if not await self._wait_for_rate() or not self._services.held.are_safe(job.keys):
            await self._services.held.release(job.keys)
            return
        started_at = self._services.ctx.clock()
        job_result = await self._services.attempter.attempt(
            job, slot, max_deliveries=self.adaptive_rate.messages_per_connection
        )
        if job_result is None or (self._is_stopping and job_result.had_no_effect):
            await self._services.held.release(job.keys)
            return
        self._apply_feedback(job_result)
        await self._services.recorder.record_attempt(job, job_result, provider_queue=self.name, started_at=started_at)

    async def _prepare(self, job: message_loader.Job) -> bool:
        ready: list[message_loader.Job] = []
        await self._services.message_loader.prepare([job], ready.append)
        if not ready:
            await self._release_later(job)
        return bool(ready)

    async def _release_later(self, job: message_loader.Job) -> None:
        await asyncio.sleep(ERROR_BACKOFF_SECONDS)
        await self._services.held.release(job.keys)

    async def _wait_for_rate(self) -> bool:
        """Wait for the rate; False when that takes so long that the job is better released."""
        while (wait := self.adaptive_rate.take(self._services.clock())) > 0:
            if wait > LOOKAHEAD_SECONDS or self._is_stopping:
                return False
            await asyncio.sleep(wait)
        return True

    def _apply_feedback(self, job_result: delivery_attempter.JobResult) -> None:
        """Adapt the rate to the results."""
        now = self._services.clock()
        self._is_proven = not job_result.is_unresponsive
        for result, disposition in zip(job_result.results, job_result.dispositions, strict=True):
            if disposition.verdict is bounces_disposition.Verdict.DELIVERED:
                self.adaptive_rate.succeeded(now)
                self._spawn_worker()
                return
            self.last_error = result.response_text
            if disposition.slow_down:
                self.adaptive_rate.slow_down(now, disposition.retry_after)
                return
        if job_result.is_unresponsive:
            self.adaptive_rate.connection_failed(now)
