"""A pool: everything that goes to one mailbox provider, with its own connections, its own rate and its own patience.

Each connection has a worker. It takes job after job, waits a little for the next one, and then takes leave; so does one
whose connection has carried enough, or for which there is no place any more. A pool takes only as many jobs as it can
soon send; the rest waits in the store, where nothing is counted and nothing fires.
"""

import asyncio
import collections
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from postroad import config
from postroad.delivery import leases, permits, preparing, recording, trying
from postroad.model import judging, pace
from postroad.services import context
from postroad.storage import group_commit
from postroad.telemetry import logs

# Jobs in memory for each connection: enough to keep it busy while the next claim is on its way to disk.
JOBS_A_CONNECTION: Final = 16
# A slow pool holds no more than it can send in this time, so that mail which comes later is not far behind.
SECONDS_AHEAD: Final = 2
# After a bug, or with a store that is away: the same again at once would fare no better.
TROUBLE_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Tools:
    """What all pools share."""

    ctx: context.Context
    held: leases.Leases
    preparing: preparing.Preparing
    trying: trying.Trying
    recording: recording.Recording
    permits: permits.Permits
    log: logs.Logger
    clock: Callable[[], float]
    # Called when a pool can take more.
    wake: Callable[[], None]


class Pool:
    """Jobs for one provider, and the workers that send them."""

    def __init__(self, name: str, limits: config.Pool, tools: Tools) -> None:
        self.name = name
        self.pace = pace.Pace(
            connections=limits.connections,
            messages_per_second=limits.messages_per_second,
            messages_per_connection=limits.messages_per_connection,
        )
        self.last_trouble = ""
        self._tools = tools
        self._jobs: collections.deque[preparing.Job] = collections.deque()
        self._expected = 0
        self._idle: dict[asyncio.Future[preparing.Job | None], trying.Link] = {}
        # Workers that take jobs have a link here; those that take leave are still workers.
        self._links: set[trying.Link] = set()
        self._workers: set[asyncio.Task[None]] = set()
        self._is_proven = False
        self._is_stopping = False
        is_named = name in config.Pools.__struct_fields__
        self._large = asyncio.Semaphore(preparing.LARGE_AT_ONCE if is_named else preparing.LARGE_AT_A_STRANGER)

    @property
    def is_idle(self) -> bool:
        """Whether nothing happens in the pool."""
        return not self._workers and not self._jobs and not self._expected

    def room(self) -> int:
        """How many more jobs the pool takes now: none before half of it is free, for a claim of few costs as much."""
        now = self._tools.clock()
        if self.pace.paused_until(now) is not None or self.pace.wait(now) > SECONDS_AHEAD:
            return 0
        capacity = self._capacity()
        free = capacity - len(self._jobs) - self._expected
        return free if free * 2 >= capacity else 0

    def _capacity(self) -> int:
        connections = self.pace.allowed_connections()
        return min(connections * JOBS_A_CONNECTION, max(connections, int(self.pace.rate() * SECONDS_AHEAD)))

    def expect(self, jobs: int) -> None:
        """Keep room for jobs that are being prepared; `add` or `forget` follows for each."""
        self._expected += jobs

    def forget(self, jobs: int) -> None:
        """Jobs that do not come after all."""
        self._expected -= jobs

    def add(self, job: preparing.Job) -> None:
        """Send this one, which was expected, next when it is its turn."""
        self._expected -= 1
        for waiting, link in self._idle.items():
            if link.fits(job.route, most_deliveries=self.pace.messages_per_connection):
                del self._idle[waiting]
                waiting.set_result(job)
                return
        self._jobs.append(job)
        if not self._hire() and self._idle:
            # All places are taken, one of them by a connection to another host: it makes room.
            waiting = next(iter(self._idle))
            del self._idle[waiting]
            waiting.set_result(self._jobs.popleft())

    def _hire(self) -> bool:
        """One more worker, if there is work and a place for it."""
        if not self._jobs or self._is_stopping or len(self._workers) >= self.pace.allowed_connections():
            return False
        worker = asyncio.get_running_loop().create_task(self._work())
        self._workers.add(worker)
        worker.add_done_callback(self._end)
        return True

    def _end(self, worker: asyncio.Task[None]) -> None:
        """Somebody else takes over what came in while the worker took leave."""
        self._workers.discard(worker)
        if worker.cancelled():
            return
        if (problem := worker.exception()) is not None:
            self._tools.log.error("worker_failed", pool=self.name, exc_info=problem)
            asyncio.get_running_loop().call_later(TROUBLE_SECONDS, self._hire)
        else:
            self._hire()

    def close(self) -> list[preparing.Job]:
        """Begin nothing more; returns the jobs that were not begun."""
        self._is_stopping = True
        left = list(self._jobs)
        self._jobs.clear()
        for waiting in self._idle:
            waiting.set_result(None)
        self._idle.clear()
        return left

    async def finish(self) -> None:
        """Wait for what is being sent."""
        if self._workers:
            await asyncio.wait(self._workers)

    def cut(self) -> None:
        """End connections at once; what was on them gets its result from that."""
        for link in self._links:
            link.cut()

    async def _work(self) -> None:
        link = trying.Link()
        self._links.add(link)
        try:
            async with self._tools.permits.one(proven=self._is_proven):
                self._tools.ctx.metrics.connections.change(1)
                try:
                    while (job := await self._next_job(link)) is not None:
                        await self._send(job, link)
                    self._links.discard(link)
                    await link.close()
                finally:
                    self._tools.ctx.metrics.connections.change(-1)
        finally:
            self._links.discard(link)
            if link.connection is not None:
                link.connection.abort()

    async def _next_job(self, link: trying.Link) -> preparing.Job | None:
        # Whoever leaves gives the permit back, so that pools whose workers wait for one get their turn.
        is_worn = link.is_worn(most_deliveries=self.pace.messages_per_connection)
        if is_worn or len(self._links) > self.pace.allowed_connections():
            return None
        if self._jobs:
            return self._jobs.popleft()
        if link.connection is None or not link.connection.is_usable or self._is_stopping:
            return None
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[preparing.Job | None] = loop.create_future()
        self._idle[waiting] = link
        alarm = loop.call_later(self._tools.ctx.settings.delivery.idle_seconds, self._give_up, waiting)
        try:
            return await waiting
        finally:
            alarm.cancel()
            self._idle.pop(waiting, None)

    def _give_up(self, waiting: asyncio.Future[preparing.Job | None]) -> None:
        if self._idle.pop(waiting, None) is not None:
            waiting.set_result(None)

    async def _send(self, job: preparing.Job, link: trying.Link) -> None:
        """Send one job, whatever happens: a job that is lost here would wait for the end of its lease."""
        try:
            if job.is_large:
                await self._send_large(job, link)
            else:
                await self._send_prepared(job, link)
        except group_commit.TROUBLE as trouble:
            self._tools.log.warning("not_prepared_yet", message_id=job.message[1], error=trouble.message)
            await self._wait_for_the_store(job)
        except Exception:
            self._tools.log.exception("delivery_failed", message_id=job.message[1])
            await self._tools.recording.nowhere(job.claims, preparing.BROKEN)
        finally:
            self._tools.preparing.done_with(job)
        if self.room():
            self._tools.wake()

    async def _send_large(self, job: preparing.Job, link: trying.Link) -> None:
        """Send what only a few may have in memory. While others keep all places, the small ones behind it go on."""
        async with contextlib.AsyncExitStack() as places:
            await places.enter_async_context(self._large)
            try:
                async with asyncio.timeout(SECONDS_AHEAD):
                    await places.enter_async_context(self._tools.preparing.large.one(proven=self._is_proven))
            except TimeoutError:
                await self._tools.held.hand_back(job.keys)
                return
            await self._send_prepared(job, link)

    async def _send_prepared(self, job: preparing.Job, link: trying.Link) -> None:
        if not job.is_prepared and not await self._prepare(job):
            return
        if job.envelope is None:
            await self._tools.recording.nowhere(job.claims, job.obstacle)
            return
        if not await self._turn() or not self._tools.held.are_safe(job.keys):
            await self._tools.held.hand_back(job.keys)
            return
        started_at = self._tools.ctx.clock()
        attempted = await self._tools.trying.attempt(job, link, most_deliveries=self.pace.messages_per_connection)
        if attempted is None or (self._is_stopping and attempted.is_undone):
            await self._tools.held.hand_back(job.keys)
            return
        self._learn(attempted)
        await self._tools.recording.attempted(job, attempted, pool=self.name, started_at=started_at)

    async def _prepare(self, job: preparing.Job) -> bool:
        ready: list[preparing.Job] = []
        await self._tools.preparing.prepare([job], ready.append)
        if not ready:
            await self._wait_for_the_store(job)
        return bool(ready)

    async def _wait_for_the_store(self, job: preparing.Job) -> None:
        await asyncio.sleep(TROUBLE_SECONDS)
        await self._tools.held.hand_back(job.keys)

    async def _turn(self) -> bool:
        """Wait for the rate; False when it takes so long that the job is better kept in the store."""
        while (wait := self.pace.take(self._tools.clock())) > 0:
            if wait > SECONDS_AHEAD or self._is_stopping:
                return False
            await asyncio.sleep(wait)
        return True

    def _learn(self, attempted: trying.Attempted) -> None:
        """What the results tell about the destination."""
        now = self._tools.clock()
        self._is_proven = not attempted.is_silent
        for result, judgement in zip(attempted.results, attempted.judgements, strict=True):
            if judgement.verdict is judging.Verdict.DELIVERED:
                self.pace.succeeded(now)
                self._hire()
                return
            self.last_trouble = result.words
            if judgement.slow_down:
                self.pace.slow_down(now, judgement.retry_after)
                return
        if attempted.is_silent:
            self.pace.connection_failed(now)
