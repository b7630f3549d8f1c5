"""A provider queue: all mail to one mailbox provider from one source address, with its connections, rate and back-off.

Each connection has a worker. It takes job after job, waits a little for the next one, and closes; it also closes when
its connection has reached its message limit, the connection limit has shrunk, or no account with a job has a share of
the connections left. Accounts take turns, and urgent jobs go first (`model/delivery/fair_shares.py`). As long as a host
answers, an account with few jobs gets one connection for them. A provider queue takes only as many jobs as it can soon
send; the rest waits in the database.
"""

import asyncio
import collections
import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from postroad import context
from postroad.concurrency import fairness
from postroad.delivery import attempter as delivery_attempter
from postroad.delivery import controls, routing
from postroad.delivery import permits as delivery_permits
from postroad.delivery import recorder as delivery_recorder
from postroad.model.bounces import disposition as bounces_disposition
from postroad.model.delivery import adaptive_rate, fair_shares, providers
from postroad.model.units import times
from postroad.storage.engine import store
from postroad.storage.operations import processes
from postroad.telemetry import logs


@dataclass(frozen=True, slots=True)
class DeliveryServices:
    """The parts of an engine that provider queues use. A field named like its module would hide it on Python 3.14."""

    ctx: context.Context
    leases: delivery_recorder.Leases
    holds: controls.HoldCache
    sources: controls.SourceTable
    message_loader: delivery_attempter.MessageLoader
    attempter: delivery_attempter.Attempter
    recorder: delivery_recorder.Recorder
    permits: delivery_permits.Permits
    log: logs.Logger
    clock: Callable[[], float]
    # The wall clock as far as it is trusted (`model/units/times.py`): what ends by it, a lease or a recipient's time.
    trusted_clock: Callable[[], int]
    # Called when a provider queue has free capacity.
    wake: Callable[[], None]


# Jobs in memory for each connection: enough to keep it busy while the next claim is on its way to disk.
JOBS_PER_CONNECTION: Final = 16
# Urgent jobs of an account, beside all others: one is under way on each connection, and one is next.
URGENT_JOBS_PER_CONNECTION: Final = 2
# A slow provider queue holds only what it can send in this time, so that new mail is not far behind.
LOOKAHEAD_SECONDS: Final = 2
# How long jobs wait while nothing is delivered here, before another connection is opened, which costs as much CPU time
# as a few messages. With each attempt under way in the process its own turns take longer, and its rate depends less on
# what is sent to one host at a time.
PATIENCE_SECONDS: Final = 0.05
MAX_PATIENCE_SECONDS: Final = 1.0
# Long enough for the next message of a steady stream; servers count idle connections against their senders.
IDLE_SECONDS: Final = 5.0


class JobCapacity:
    """How many jobs a provider queue takes: what it can soon send, and urgent ones beside that.

    Jobs that are being prepared count as well: capacity is reserved for each.
    """

    def __init__(self, rate: adaptive_rate.AdaptiveRate, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self.reserved = 0
        # Urgent jobs by account, from their reservation to their end.
        self._urgent: collections.Counter[str] = collections.Counter()

    @property
    def has_urgent(self) -> bool:
        return bool(self._urgent)

    def left(self, queued: int) -> int:
        """How many more jobs fit now; 0 until half is free, because small claims cost as much as large ones."""
        if self._is_waiting():
            return 0
        connections = self._rate.allowed_connections
        capacity = min(connections * JOBS_PER_CONNECTION, max(connections, int(self._rate.rate() * LOOKAHEAD_SECONDS)))
        free = capacity - queued - self.reserved
        return free if free * 2 >= capacity else 0

    def urgent_left(self, account_id: str) -> int:
        """How many more urgent jobs of an account fit now, however many others there are."""
        if self._is_waiting():
            return 0
        return max(0, self._rate.allowed_connections * URGENT_JOBS_PER_CONNECTION - self._urgent[account_id])

    def reserve(self, jobs: Sequence[delivery_attempter.Job]) -> None:
        """Reserve capacity for jobs that are being prepared; each is added, or `cancel_reserved` follows."""
        self.reserved += len(jobs)
        for job in jobs:
            if job.is_urgent:
                self._urgent[job.account_id] += 1

    def cancel_reserved(self, job: delivery_attempter.Job) -> None:
        self.reserved -= 1
        self.end(job)

    def end(self, job: delivery_attempter.Job) -> None:
        """A job has ended, or is no longer here."""
        if job.is_urgent:
            self._urgent -= collections.Counter([job.account_id])

    def _is_waiting(self) -> bool:
        now = self._clock()
        return self._rate.paused_until(now) is not None or self._rate.wait(now) > LOOKAHEAD_SECONDS


# A provider queue that may have no more than this many connections keeps none of them for the next account: the first
# transaction with a new host would hold up all mail of its account to that host.
MAX_UNSHARED_CONNECTIONS: Final = 2
# After a bug or a database outage, repeating at once would not help.
ERROR_BACKOFF_SECONDS: Final = 1.0


class _Worker(msgspec.Struct, frozen=True):
    """A worker that may hold a connection."""

    slot: delivery_attempter.ConnectionSlot
    permit: delivery_permits.Permit


class ProviderQueue:
    """Jobs for one provider, and their workers. `fall_back` gives a job without a session to another provider queue."""

    def __init__(
        self,
        name: str,
        limits: adaptive_rate.Limits,
        services: DeliveryServices,
        *,
        source: str = "",
        fall_back: Callable[[delivery_attempter.Job, str], bool] = lambda _job, _error: False,
    ) -> None:
        self.name = name
        self.source = source
        self.used_at = float("-inf")
        self.adaptive_rate = adaptive_rate.AdaptiveRate(limits)
        self.last_error = ""
        self._services = services
        self._jobs: fair_shares.Turns[str, delivery_attempter.Job] = fair_shares.Turns()
        self.capacity = JobCapacity(self.adaptive_rate, services.clock)
        self._idle: dict[asyncio.Future[delivery_attempter.Job | None], _Worker] = {}
        # Only workers that take jobs have a slot here; those that wait for a permit, by account, have none yet, and
        # those that are closing have none any more. All of them are in `_workers`.
        self._slots: set[delivery_attempter.ConnectionSlot] = set()
        self._asking: collections.Counter[str] = collections.Counter()
        self._workers: set[asyncio.Task[None]] = set()
        # The connections with a job under way, by account.
        self._shares = fair_shares.FairShares(0)
        self._connections = 0  # of which they are shares
        self._is_responsive = False
        self._is_stopping = False
        self._patience: asyncio.TimerHandle | None = None
        self._has_waited = False  # until no job waits
        # Large jobs wait for a place in a task of their own, not in a worker, and are queued when they have one.
        self._large_tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[delivery_attempter.Job, asyncio.Task[None]] = {}
        self._admitted: dict[delivery_attempter.Job, asyncio.Event] = {}  # set when its slot is free again
        self._fall_back = fall_back
        is_named = providers.label_of(name) != providers.OTHERS
        self._large = fairness.FairSemaphore(
            delivery_attempter.MAX_CONCURRENT_LARGE
            if is_named
            else delivery_attempter.MAX_CONCURRENT_LARGE_PER_DESTINATION
        )

    @property
    def is_responsive(self) -> bool:
        """Whether the destination answers quickly, by the last thing that is known of it."""
        return self._is_responsive

    @property
    def is_idle(self) -> bool:
        """Whether there are no workers and no jobs."""
        return not (self._workers or self._jobs.count or self._large_tasks or self.capacity.reserved)

    @property
    def is_paused(self) -> bool:
        """Whether the provider asked for a pause, or an operator has paused it."""
        return self.adaptive_rate.paused_until(self._services.clock()) is not None or self._is_paused_by_operator()

    def _is_paused_by_operator(self) -> bool:
        services = self._services
        return services.holds.is_paused(self.name) or services.sources.is_paused(self.source, self.name)

    @property
    def load(self) -> int:
        """How many jobs wait here or are under way."""
        return self._jobs.count + len(self._waiting) + self.capacity.reserved + len(self._slots) - len(self._idle)

    def capacity_left(self) -> int:
        """How many more jobs fit now."""
        left = self.capacity.left(self._jobs.count + len(self._waiting))
        return self._permitted(left) if left else 0

    def _permitted(self, left: int) -> int:
        """As much of it as operators and the warm-up of the source address let through."""
        if not (self._services.holds.has_any or self.source):
            return left
        return 0 if self._is_paused_by_operator() else min(left, self._services.sources.room(self.source, self.name))

    def urgent_left(self, account_id: str) -> int:
        """How many more urgent jobs of an account fit now."""
        left = self.capacity.urgent_left(account_id)
        return self._permitted(left) if left else 0

    def add(self, job: delivery_attempter.Job) -> None:
        self.capacity.reserved -= 1
        self.used_at = self._services.clock()
        if not job.is_large:
            self._enqueue(job)
            return
        task = asyncio.get_running_loop().create_task(self._enqueue_large(job))
        self._waiting[job] = task
        self._large_tasks.add(task)
        task.add_done_callback(self._large_tasks.discard)

    async def _enqueue_large(self, job: delivery_attempter.Job) -> None:
        """Queue a large job once its account has a share of the places, and hold the place until the job has ended."""
        async with contextlib.AsyncExitStack() as places:
            try:
                async with asyncio.timeout(LOOKAHEAD_SECONDS):
                    await places.enter_async_context(self._large.hold(job.account_id))
                    await places.enter_async_context(self._services.message_loader.large.hold(job.account_id))
            except TimeoutError:
                if self._waiting.pop(job, None) is not None:
                    self.capacity.end(job)
                    await self._services.leases.release([job.key])
                    self._wake()
                return
            if self._waiting.pop(job, None) is not None:
                ended = self._admitted[job] = asyncio.Event()
                self._enqueue(job)
                await ended.wait()

    def _enqueue(self, job: delivery_attempter.Job) -> None:
        account_id = job.account_id
        for waiting, worker in self._idle.items():
            if worker.slot.fits(
                job.route, max_deliveries=self.adaptive_rate.limits.messages_per_connection
            ) and self._begin(account_id, worker.permit):
                del self._idle[waiting]
                waiting.set_result(job)
                return
        self._jobs.add(account_id, job, is_urgent=job.is_urgent)
        if not self._spawn_worker() and self._idle and self._has_share(account_id):
            # The connection limit is reached, and an idle connection goes to another host: its worker takes the job. Or
            # the account has no share of the connections now: the worker ends, and another one waits for a share.
            waiting, worker = next(iter(self._idle.items()))
            del self._idle[waiting]
            waiting.set_result(self._take_job(worker.permit))

    def _take_job(self, permit: delivery_permits.Permit) -> delivery_attempter.Job | None:
        """The next job whose account may use the permit."""
        for account_id in self._jobs.parties():
            if self._begin(account_id, permit):
                return self._jobs.take(account_id)
        return None

    def _has_share(self, account_id: str) -> bool:
        """Whether another job of the account may begin.

        An account alone gets all connections but one, which is there for the next account: it cannot be told in advance
        which transactions will hold on, and those under way cannot be ended.
        """
        connections = self.adaptive_rate.allowed_connections
        if connections != self._connections:
            self._connections = connections
            self._shares.resize(connections)
        alpha = connections / 2 if connections > MAX_UNSHARED_CONNECTIONS else connections
        return self._shares.has_share(fair_shares.Party(account_id, alpha))

    def _begin(self, account_id: str, permit: delivery_permits.Permit) -> bool:
        """Begin a job of the account, if it has a share of these connections and of those of all provider queues."""
        if not self._has_share(account_id) or not permit.begin(account_id, is_responsive=self._is_responsive):
            return False
        self._shares.add((fair_shares.Party(account_id),))
        return True

    def _spawn_worker(self) -> bool:
        """Start a worker, if there is a job and the connection limit allows it."""
        allowed = self.adaptive_rate.allowed_connections
        if not self._jobs.count or self._is_stopping or len(self._workers) - sum(self._asking.values()) >= allowed:
            return False
        # Workers that wait for the share of one account must not keep another account from asking.
        parties = self._jobs.parties
        account_id = next((party for party in parties() if party not in self._asking and self._has_share(party)), None)
        if account_id is None and len(self._workers) < allowed:
            account_id = next(filter(self._has_share, parties()), None)
        if account_id is None or self._is_patient(account_id):
            return False
        self._asking[account_id] += 1
        worker = asyncio.get_running_loop().create_task(self._work(account_id))
        self._workers.add(worker)
        worker.add_done_callback(self._worker_ended)
        return True

    def _is_patient(self, account_id: str) -> bool:
        """Whether jobs of an account that has a connection here, or asks for one, wait for it a little."""
        has_one = account_id in self._asking or self._shares.held(fair_shares.Party(account_id))
        if not has_one or self._has_waited or self._jobs.has_urgent(account_id):
            return False
        if self._jobs.count > JOBS_PER_CONNECTION * len(self._workers):
            return False
        if self._patience is None:
            self._start_patience()
        return True

    def _start_patience(self) -> None:
        seconds = min(PATIENCE_SECONDS * max(1, len(self._services.permits.working)), MAX_PATIENCE_SECONDS)
        self._patience = asyncio.get_running_loop().call_later(
            seconds, self._end_patience, self.adaptive_rate.successes
        )

    def _end_patience(self, successes: int) -> None:
        self._patience = None
        is_moving = self.adaptive_rate.successes != successes
        # While connections are contended, another one would only wait for its permit.
        self._has_waited = not (is_moving or not self._slots or self._services.permits.semaphore.is_contended)
        while self._spawn_worker():
            pass

    def _reset_patience(self) -> None:
        """No job waits."""
        self._has_waited = False
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

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

    def remove_expired(self, now: int) -> list[delivery_attempter.Job]:
        """Urgent jobs that were not begun in their time."""
        expired = self._jobs.remove_urgent(lambda job: job.has_expired(now))
        for job in expired:
            self.capacity.end(job)
            self._release_slot(job)
        return expired

    def close(self) -> list[delivery_attempter.Job]:
        """Begin nothing more; returns the jobs that were not begun."""
        self._is_stopping = True
        queued = self._jobs.clear()
        for job in queued:
            self._release_slot(job)
        left = [*queued, *self._waiting]
        for task in self._waiting.values():
            task.cancel()
        self._waiting.clear()
        for waiting in self._idle:
            waiting.set_result(None)
        self._idle.clear()
        return left

    async def finish(self) -> None:
        if tasks := self._workers | self._large_tasks:
            await asyncio.wait(tasks)

    def abort(self) -> None:
        """Close all connections at once; deliveries under way get a result that says so."""
        for slot in self._slots:
            slot.abort()

    async def _work(self, account_id: str) -> None:
        slot = delivery_attempter.ConnectionSlot()
        async with contextlib.AsyncExitStack() as held:
            try:
                permit = await held.enter_async_context(
                    self._services.permits.acquire(
                        account_id,
                        is_responsive=self._is_responsive,
                        is_urgent=self._jobs.has_urgent(account_id),
                        on_slow=self._on_slow,
                    )
                )
            finally:
                self._asking -= collections.Counter([account_id])
            self._slots.add(slot)
            self._services.ctx.metrics.connections.change(1)
            try:
                worker = _Worker(slot, permit)
                while (job := await self._next_job(worker)) is not None:
                    # A job lost here would wait until its lease expires.
                    try:
                        await self._send(job, worker)
                    except Exception as error:  # noqa: BLE001 - logged, and recorded
                        await self._after_error(job, error)
                    finally:
                        self._end(job)
                self._slots.discard(slot)
                await slot.close()
            finally:
                self._services.ctx.metrics.connections.change(-1)
                self._slots.discard(slot)
                if slot.connection is not None:
                    slot.connection.abort()

    async def _next_job(self, worker: _Worker) -> delivery_attempter.Job | None:
        # A worker that ends returns its permit, so that other provider queues get their turn.
        slot = worker.slot
        rate, connection = self.adaptive_rate, slot.connection
        is_exhausted = connection is not None and connection.deliveries >= rate.limits.messages_per_connection
        if is_exhausted or len(self._slots) > rate.allowed_connections:
            return None
        if self._jobs.count:
            return self._take_job(worker.permit)
        self._reset_patience()
        if connection is None or not connection.is_usable or self._is_stopping or worker.permit.is_wanted:
            return None
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[delivery_attempter.Job | None] = loop.create_future()
        self._idle[waiting] = worker
        worker.permit.begin_idle(functools.partial(self._end_idle_wait, waiting))
        alarm = loop.call_later(IDLE_SECONDS, self._end_idle_wait, waiting)
        try:
            return await waiting
        finally:
            alarm.cancel()
            self._idle.pop(waiting, None)

    def _on_slow(self) -> None:
        self._is_responsive = False

    def _end_idle_wait(self, waiting: asyncio.Future[delivery_attempter.Job | None]) -> None:
        if self._idle.pop(waiting, None) is not None:
            waiting.set_result(None)

    async def _after_error(self, job: delivery_attempter.Job, error: Exception) -> None:
        if isinstance(error, store.UNAVAILABLE):
            self._services.log.warning("message_load_deferred", message_id=job.message[1], error=error.message)
            await self._release_later(job)
            return
        self._services.log.error("delivery_failed", message_id=job.message[1], exc_info=error)
        await self._services.recorder.record_unroutable([job.claim], delivery_attempter.INTERNAL_ERROR)

    def _end(self, job: delivery_attempter.Job) -> None:
        """A job was sent, or is no longer here."""
        self._services.message_loader.release(job)
        if job.is_urgent:
            self.capacity.end(job)
        if job.is_large:
            self._release_slot(job)
        self._shares.give_back((fair_shares.Party(job.account_id),))
        # Less than half of the capacity is not worth a claim.
        waiting = self._jobs.count + len(self._waiting) + self.capacity.reserved
        if 2 * waiting <= self.adaptive_rate.allowed_connections * JOBS_PER_CONNECTION:
            self._wake()

    def _wake(self) -> None:
        if self._services.leases.leaves_ready and self.capacity_left():
            self._services.wake()

    def _release_slot(self, job: delivery_attempter.Job) -> None:
        if (ended := self._admitted.pop(job, None)) is not None:
            ended.set()

    async def _send(self, job: delivery_attempter.Job, worker: _Worker) -> None:
        services, permit, slot = self._services, worker.permit, worker.slot
        if not job.is_prepared and not await self._prepare(job):
            return
        if job.transaction is None:
            await services.recorder.record_unroutable([job.claim], job.failure)
            return
        wait = self.adaptive_rate.take(services.clock())
        may_begin = not wait or await self._wait_for_rate(wait)
        started_at = services.ctx.clock()
        trusted_now = 0 if job.expires_at is None else services.trusted_clock()
        may_begin = may_begin and services.leases.is_safe(job.key, now=started_at)
        is_held = (services.holds.has_any or self.source) and (
            services.holds.covers(job.claim.queue_key) or self._is_paused_by_operator()
        )
        if not may_begin or is_held or (job.expires_at is not None and job.expires_at <= trusted_now):
            await services.leases.release([job.key])
            return
        max_deliveries = self.adaptive_rate.limits.messages_per_connection
        services.permits.watch(permit)
        try:
            if job.expires_at is None:
                job_result = await services.attempter.attempt(job, slot, max_deliveries=max_deliveries)
            else:
                with slot.ending_in((job.expires_at - trusted_now) / times.SECOND):
                    job_result = await services.attempter.attempt(job, slot, max_deliveries=max_deliveries)
        finally:
            services.permits.working.pop(permit, None)
        if job_result is None or (self._is_stopping and job_result.had_no_effect):
            await services.leases.release([job.key])
            return
        if job_result.disposition.verdict is bounces_disposition.Verdict.DELIVERED:
            self._apply_success(is_responsive=not permit.was_slow)
        elif job_result.has_no_session and not self._is_stopping and self._fall_back(job, job_result.error):
            self.last_error = job_result.error
            self.adaptive_rate.connection_failed(services.clock())
            return
        else:
            self._apply_failure(job_result, is_responsive=not permit.was_slow)
        await services.recorder.record_attempt(job, job_result, provider_queue=self.name, started_at=started_at)

    async def _prepare(self, job: delivery_attempter.Job) -> bool:
        ready: list[delivery_attempter.Job] = []
        await self._services.message_loader.prepare([job], ready.append)
        if not ready:
            await self._release_later(job)
        return bool(ready)

    async def _release_later(self, job: delivery_attempter.Job) -> None:
        await asyncio.sleep(ERROR_BACKOFF_SECONDS)
        await self._services.leases.release([job.key])

    async def _wait_for_rate(self, wait: float) -> bool:
        """Wait for the rate; False when that takes so long that the job is better released."""
        while wait > 0:
            if wait > LOOKAHEAD_SECONDS or self._is_stopping:
                return False
            await asyncio.sleep(wait)
            wait = self.adaptive_rate.take(self._services.clock())
        return True

    def _apply_success(self, *, is_responsive: bool) -> None:
        self._is_responsive = is_responsive
        allowed = self.adaptive_rate.allowed_connections
        self.adaptive_rate.succeeded(self._services.clock())
        # Only a higher limit gives more to an account that is alone.
        if self.adaptive_rate.allowed_connections > allowed or len(self._jobs.turns) > 1:
            self._spawn_worker()

    def _apply_failure(self, job_result: delivery_attempter.JobResult, *, is_responsive: bool) -> None:
        now, disposition = self._services.clock(), job_result.disposition
        self._is_responsive = is_responsive and not job_result.is_unresponsive
        self.last_error = job_result.error
        if disposition.slow_down:
            self.adaptive_rate.slow_down(now, disposition.retry_after)
        elif job_result.is_unresponsive:
            self.adaptive_rate.connection_failed(now)


# Up to this many, nothing is dropped.
DROP_THRESHOLD: Final = 1_000
# Of those that are idle, and slowed or paused.
MAX_SLOWED: Final = 5_000
# To find what to drop takes some 2.5 microseconds for each.
DROP_INTERVAL_SECONDS: Final = 1.0


class ProviderQueues:
    """The provider queues of one process: made when mail is for them, and dropped when they have none.

    One that is slowed remembers what its provider asked for, so it is kept for longer. Whoever controls many
    domains could cause any number of slowed ones, so it is limited: of those of small destinations, the longest
    unused go. `fall_back` gives a job without a session to another provider queue.
    """

    def __init__(self, services: DeliveryServices, *, fall_back: Callable[[delivery_attempter.Job, str], bool]) -> None:
        self._services = services
        self._fall_back = fall_back
        self._upstreams = {upstream.provider_queue: upstream for upstream in services.ctx.settings.upstreams}
        self._drop_at = float("-inf")
        self.by_name: dict[str, ProviderQueue] = {}  # by the `queue_name` of their routes
        self.routes: dict[str, routing.Route] = {}  # the latest of each

    def of(self, route: routing.Route) -> ProviderQueue:
        """The provider queue of a route, with the limits that it has now."""
        name, holds = route.queue_name, self._services.holds
        queue = self.by_name.get(name)
        settings = self._services.ctx.settings
        limits = self._upstreams.get(route.provider) or getattr(settings.providers, route.provider)
        if holds.has_any:
            limits = holds.limits(route.provider_queue, limits)
        if queue is not None and queue.adaptive_rate.limits != limits:  # by an operator, or the settings were reloaded
            queue.adaptive_rate.set_limits(limits)
        if queue is None:
            queue = self.by_name[name] = ProviderQueue(
                route.provider_queue, limits, self._services, source=route.source, fall_back=self._fall_back
            )
        self.routes[name] = route
        return queue

    def drop_idle(self) -> None:
        """Drop those that are idle and have nothing to remember, and of the others those that are too many."""
        now = self._services.clock()
        if len(self.by_name) <= DROP_THRESHOLD or now < self._drop_at:
            return
        self._drop_at = now + DROP_INTERVAL_SECONDS
        idle = [(name, queue) for name, queue in self.by_name.items() if queue.is_idle]
        slowed = [(name, queue) for name, queue in idle if queue.adaptive_rate.state(now) != "open"]
        small = [(name, queue) for name, queue in slowed if providers.label_of(queue.name) == providers.OTHERS]
        small.sort(key=lambda named: named[1].used_at)
        kept = {name for name, _ in slowed} - {name for name, _ in small[: max(0, len(slowed) - MAX_SLOWED)]}
        for name, _ in idle:
            if name not in kept:
                del self.by_name[name]
                del self.routes[name]


CHECK_SECONDS: Final = 1.0
REPEAT_SECONDS: Final = 30


class StatusReporter:
    """Reports changes of status."""

    def __init__(
        self,
        ctx: context.Context,
        known: ProviderQueues,
        known_hosts: routing.Hosts,
        leases: delivery_recorder.Leases,
        log: logs.Logger,
    ) -> None:
        self._ctx = ctx
        self._provider_queues = known
        self._hosts = known_hosts
        self._worker = leases.worker
        self._log = log
        self._reported: dict[str, processes.QueueStatus] = {}

    async def run_forever(self) -> None:
        """Report until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await self.publish()
            except store.UNAVAILABLE as error:
                self._log.warning("provider_status_report_failed", error=error.message)

    async def publish(self) -> None:
        """Report what has changed, and repeat old reports."""
        statuses = self._statuses()
        changed = [status for name, status in statuses.items() if self._has_changed(self._reported.get(name), status)]
        gone = self._reported.keys() - statuses.keys()
        if changed or gone:
            async with self._ctx.store.transaction() as tx:
                await processes.put_queues(tx, changed)
                await processes.remove_queues(tx, self._worker, sorted(gone))
            self._reported = {
                **{name: status for name, status in self._reported.items() if name in statuses},
                **{p.name: p for p in changed},
            }

    async def close(self) -> None:
        try:
            async with self._ctx.store.transaction() as tx:
                await processes.remove_queues_of(tx, self._worker)
        except store.UNAVAILABLE as error:
            self._log.warning("provider_status_report_failed", error=error.message)

    def _statuses(self) -> dict[str, processes.QueueStatus]:
        now = asyncio.get_running_loop().time()
        statuses: dict[str, processes.QueueStatus] = {}
        open_ones: set[str] = set()
        for name, route in self._provider_queues.routes.items():
            queue = self._provider_queues.by_name[name]
            blocked_until = self._hosts.blocked_until(route)
            paused_until = queue.adaptive_rate.paused_until(now)
            if blocked_until is not None:
                statuses[name] = self._status(name, "blocked", queue.last_error, blocked_until - now)
            elif paused_until is not None:
                statuses[name] = self._status(name, "paused", queue.last_error, paused_until - now)
            elif queue.adaptive_rate.state(now) == "slowed":
                statuses[name] = self._status(name, "slowed", queue.last_error, 0)
            elif queue.source:
                open_ones.add(queue.name)
        return self._of_all_sources(statuses, open_ones)

    def _of_all_sources(
        self, statuses: dict[str, processes.QueueStatus], open_ones: set[str]
    ) -> dict[str, processes.QueueStatus]:
        """The same with that of each provider queue that no source address is open for."""
        for status in sorted(statuses.values(), key=lambda queue_status: -processes.QUEUE_SEVERITY[queue_status.state]):
            name = status.provider_queue
            if status.source and name not in open_ones:
                statuses[name] = msgspec.structs.replace(status, name=name)
        return statuses

    def _status(self, name: str, state: str, reason: str, seconds: float) -> processes.QueueStatus:
        now = self._ctx.clock()
        return processes.QueueStatus(self._worker, name, state, reason, now + int(seconds * times.SECOND), now)

    def _has_changed(self, before: processes.QueueStatus | None, status: processes.QueueStatus) -> bool:
        if before is None or (before.state, before.reason) != (status.state, status.reason):
            return True
        # The end of a pause is computed from two clocks and varies a little.
        moved = abs(before.until - status.until) > times.SECOND and status.state != "slowed"
        return moved or status.updated_at - before.updated_at > REPEAT_SECONDS * times.SECOND
