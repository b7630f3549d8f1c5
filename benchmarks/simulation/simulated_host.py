"""A host: the real scheduler with everything that decides about mail, between a simulated store and a simulated world.

Real are the engine's loop, dispatcher, route choice, provider queues, adaptive rates, permits, fair shares, job
capacity, breakers, leases, attempts, the recorder with the retry schedule, group commit and the bounce guard.
Simulated are the store, DNS, mail hosts, and the content of messages.
"""

import asyncio
import typing

from benchmarks.simulation import (
    costs,
    internet,
    invariants,
    measurements,
    queue_table,
    scenario,
    simulated_store,
    virtual_time,
)
from postroad import config, context
from postroad.delivery import attempter, controls, dispatcher, engine, permits, recorder, routing
from postroad.delivery import provider_queue as delivery_provider_queue
from postroad.mail.results import guard_counts, outcomes
from postroad.model.bounces import disposition
from postroad.model.units import times
from postroad.network.smtp import smtp_connection
from postroad.protocol.smtp import values
from postroad.storage.engine import group_commit, store
from postroad.storage.mail import queue

# 2026-01-01, in microseconds: days of the bounce guard begin at midnight.
MIDNIGHT = 1_767_225_600 * times.SECOND
MAX_BATCH, MAX_WAITING, WAIT_SECONDS = 256, 10_000, 10.0
# Multiples of it, without their whole part, are spread evenly.
GOLDEN = 0.618
UNUSED: typing.Any = None


class Log:
    """A logger that keeps nothing but faults."""

    def __init__(self, fault: typing.Callable[[str], None]) -> None:
        self._fault = fault

    def bind(self, **_: object) -> typing.Self:
        """The same logger."""
        return self

    def info(self, event: str, **_: object) -> None:
        """Ignore it."""

    debug = warning = info

    def error(self, event: str, **fields: object) -> None:
        """A fault."""
        self._fault(f"{event}: {fields}")

    exception = error

    def log(self, level: int, event: str, **fields: object) -> None:
        """Ignore it."""


class Loader(attempter.MessageLoader):
    """Prepares messages without content: what is read and signed is in the costs."""

    async def prepare(
        self, jobs: typing.Sequence[attempter.Job], ready: typing.Callable[[attempter.Job], None]
    ) -> None:
        """Make the transactions."""
        for job in jobs:
            job.transaction = values.MailTransaction("", (job.claim.email,), (b"",))
            job.recipient_count, job.is_prepared = 1, True
            ready(job)


class Router(routing.Router):
    """Looks up routes in the simulated world, once for each name."""

    def __init__(self, world: internet.Internet) -> None:
        self._world = world
        self._known: dict[str, routing.Route] = {}

    def cached(self, name: str) -> routing.Route | None:
        """The route, if it was looked up."""
        return self._known.get(name)

    async def route(self, name: str) -> routing.Route:
        """The route."""
        await virtual_time.sleep(internet.DNS_SECONDS, tick=self._world.tick_seconds)
        route = self._known[name] = self._world.route(name)
        return route


class Host(engine.Engine):
    """A host of the installation."""

    def __init__(
        self,
        number: int,
        settings: config.Settings,
        database: simulated_store.Database,
        world: internet.Internet,
        seen: measurements.Measurements,
        *,
        look_seconds: float,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._look_seconds, self._is_woken = look_seconds, False
        self.host, self.worker = number, f"host-{number}"
        self._time = loop.time
        self.core = costs.Core()
        self.store = simulated_store.HostStore(database, self.core)
        self._database, self._world, self._seen = database, world, seen
        self._settings = settings
        self._guard = guard_counts.rules_of(settings.bounce_guard)
        self._log = Log(lambda text: world.checks.violated(loop.time(), f"{self.worker} logs {text}"))
        self._ctx = self._context(settings)
        self._leases = recorder.Leases(
            self.store, worker=self.worker, seconds=settings.testing.lease_seconds, clock=self.clock, log=self._log
        )
        sources = controls.SourceTable(self._ctx, self._leases, loop.time)
        self._recorder = recorder.Recorder(self._ctx, self._leases, sources, self._log)
        self._hosts = routing.Hosts(loop.time)
        trusted = times.LeaseClock(settings.testing.lease_seconds * times.SECOND)
        services = delivery_provider_queue.DeliveryServices(
            ctx=self._ctx,
            leases=self._leases,
            holds=controls.HoldCache(self._ctx, loop.time),
            sources=sources,
            message_loader=Loader(self._ctx, None, self._log),
            attempter=attempter.Attempter(self._hosts, self._connect),
            recorder=self._recorder,
            permits=permits.Permits(settings.delivery.connections),
            log=self._log,
            clock=loop.time,
            trusted_clock=lambda: trusted.expired_before(now=self.clock(), monotonic=loop.time()),
            wake=self._wake,
        )
        self._dispatcher = dispatcher.Dispatcher(self._ctx, Router(world), self._hosts, services)
        self._is_stopping = False
        self._tasks = [loop.create_task(self._run()), loop.create_task(self._leases.renew_forever())]

    def _context(self, settings: config.Settings) -> context.Context:
        return context.Context(
            settings=settings,
            store=self.store,
            keys=UNUSED,
            passwords=UNUSED,
            access_cache=UNUSED,
            rate_limiter=UNUSED,
            queue_limit=UNUSED,
            accept_commits=UNUSED,
            outcome_commits=group_commit.GroupCommit(
                self.store, self._record, max_items=MAX_BATCH, max_waiting=MAX_WAITING, wait_seconds=WAIT_SECONDS
            ),
            outbox=UNUSED,
            request_log=UNUSED,
            webhook_client=UNUSED,
            sso_providers=UNUSED,
            dns=UNUSED,
            clock=self.clock,
            entropy=bytes,
        )

    def clock(self) -> int:
        """The wall clock, in microseconds."""
        return MIDNIGHT + round(self._time() * times.SECOND)

    def _wake(self) -> None:
        """Let the dispatcher look for mail: at once, or at the next of the moments at which this host does."""
        if not self._look_seconds:
            self._ctx.mail_wakeup.set()
        elif not self._is_woken:
            self._is_woken = True
            first = self._look_seconds * (self.host * GOLDEN % 1)  # hosts do not look all at the same time
            looks = int((self._time() - first) / self._look_seconds + 1)
            asyncio.get_running_loop().call_at(first + looks * self._look_seconds, self._look)

    def _look(self) -> None:
        self._is_woken = False
        self._ctx.mail_wakeup.set()

    def die(self) -> None:
        """Crash: whatever was not recorded is lost, and nobody hears of it."""
        self.store.is_dead = True
        for task in self._tasks:
            task.cancel()
        self._world.checks.host_died(self.worker)

    def check(self) -> None:
        """A task that ended has a bug."""
        for task in self._tasks:
            if task.done() and not self.store.is_dead:
                task.result()

    # What the listeners do.

    def accept(self, rows: typing.Sequence[queue_table.Row]) -> None:
        """Store messages, and let delivery know when that is done."""
        loop = asyncio.get_running_loop()
        now, spent, database = loop.time(), self._database.costs, self._database
        done = max(
            self.core.work(now, spent.accept * len(rows)),
            database.server.work(now, spent.server_accept * len(rows)),
        )
        loop.call_at(done + spent.commit, self._accepted, rows)

    def _accepted(self, rows: typing.Sequence[queue_table.Row]) -> None:
        if self.store.is_dead:
            return  # nobody got a 202
        now = self.clock()
        for row in rows:
            self._database.queue.insert(row, now=now)
        self._world.checks.accepted += len(rows)
        self._wake()

    # What mail hosts are reached with.

    async def _connect(self, host: routing.Host) -> smtp_connection.SmtpConnection:
        loop = asyncio.get_running_loop()
        kind = self._world.kind_of_host(host.name)
        delivery, name = self._settings.delivery, self._provider_queue(host.name)
        self._world.checks.connected(
            loop.time(),
            self.host,
            name,
            max_connections=self._limits(name).connections,
            max_of_host=delivery.connections,
        )
        is_open = False
        try:
            if self._world.is_silent(kind, loop.time()):
                await virtual_time.sleep(attempter.TIMEOUTS.connect)
                raise smtp_connection.ConnectFailed(internet.TIMED_OUT)
            await virtual_time.sleep(invariants.CONNECT_SECONDS, tick=self._world.tick_seconds)
            is_open = True
        finally:
            if not is_open:
                self.disconnected(host.name)
        return typing.cast("smtp_connection.SmtpConnection", internet.Connection(self._world, self, host, kind))

    def _provider_queue(self, mail_host: str) -> str:
        return self._world.provider_queue_of(mail_host)

    def _limits(self, provider_queue: str) -> config.Provider:
        limits: config.Provider = getattr(self._settings.providers, provider_queue, self._settings.providers.others)
        return limits

    def disconnected(self, mail_host: str) -> None:
        """A connection is closed."""
        self._world.checks.disconnected(self.host, self._provider_queue(mail_host))

    def begins(self, now: float, number: str, kind: scenario.Kind, mail_host: str) -> None:
        """A transaction begins."""
        name = self._provider_queue(mail_host)
        self._world.checks.started(now, self.host, name, per_second=self._limits(name).messages_per_second)
        row = self._database.queue.rows.get(number)
        if row is not None and not row.attempt_count and self._world.must_not_wait(kind, row.account_id):
            self._world.checks.waited(now, number, (self.clock() - row.queued_at) / times.SECOND)

    # What is recorded.

    async def _record(
        self, tx: store.Transaction, batches: typing.Sequence[typing.Sequence[outcomes.Outcome]]
    ) -> typing.Sequence[outcomes.RecordResult]:
        """What `outcomes.record` does, as far as delivery depends on it: the queue, and the bounce guard."""
        ended = [outcome for batch in batches for outcome in batch]
        deferred = [result for result in ended if result.next_attempt_at is not None]
        final = [result for result in ended if result.next_attempt_at is None]
        for is_counted in (True, False):
            rows = [(o.key, o.next_attempt_at or 0) for o in deferred if o.keeps_schedule is not is_counted]
            if rows:
                await queue.postpone(tx, rows, worker=self.worker, is_counted=is_counted)
        counted = [result for result in final if self._count(result)]
        await queue.remove(tx, [result.key for result in final])
        for result in deferred:
            self._seen.recorded(self._kind(result), "deferred", is_attempt=result.attempt is not None)
        await guard_counts.count(
            tx,
            self._guard,
            outcomes.guard_increments(counted),
            locked=typing.cast("typing.Any", self._database.accounts),
            now=self.clock(),
            entropy=bytes,
        )
        self._world.checks.check_counts(asyncio.get_running_loop().time())
        return [outcomes.RecordResult(0)] * len(batches)

    def _count(self, ended: outcomes.Outcome) -> bool:
        """Count a result; False if another host has recorded it, after this one had lost its lease."""
        row = self._database.queue.rows.get(ended.key[1])
        if row is None:
            return False
        self._world.checks.final += 1
        kind, status = self._kind(ended), ended.status.value
        self._seen.recorded(kind, status, is_attempt=ended.attempt is not None)
        if ended.verdict is disposition.Verdict.DELIVERED:
            self._seen.delivered(ended.key[0], kind, (ended.at - row.queued_at) / times.SECOND)
        return True

    def _kind(self, ended: outcomes.Outcome) -> str:
        return self._world.kind_of(ended.email_key.partition("@")[2]).name
