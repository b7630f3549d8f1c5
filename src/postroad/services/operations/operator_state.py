"""How the installation is, and what the operator API and console of a process share: jobs, checks, queue counts."""

import asyncio
import contextlib
import shutil
from collections.abc import Sequence
from typing import Final

import msgspec

from postroad import context
from postroad.concurrency import caches
from postroad.model.units import times
from postroad.network import hostname
from postroad.services.operations import certificates as operations_certificates
from postroad.services.operations import operator_jobs, operator_queue
from postroad.services.operations.checks import data, findings, table
from postroad.storage.engine import open_store
from postroad.storage.operations import processes as stored_processes
from postroad.storage.operations import space

# How the installation is: its processes, its store and its certificates; and the checks of `postroad doctor`.
#
# The first is read from the store at every request. The checks query DNS and open connections, so one run is shared by
# all who ask meanwhile, and its result is kept for a while.

# An operator who has corrected something looks again soon; blocklists should not be asked more often.
CHECKS_VALID: Final = 60 * times.SECOND
# Processes report themselves twice a minute; one that was silent for an hour is no longer of interest.
LISTED: Final = times.HOUR


class StoreSize(msgspec.Struct, frozen=True):
    """The bytes of the store, those free within it, those free on its disk, and its growth in a day; None: unknown."""

    engine: str
    size: int
    free: int | None
    disk_free: int | None
    daily_growth: float | None


class Health(msgspec.Struct, frozen=True):
    """The state of the installation. A process that does not report any more is not alive."""

    now: int
    processes: Sequence[stored_processes.Process]
    store: StoreSize
    certificates: Sequence[operations_certificates.ListenerCertificate]

    def is_alive(self, process: stored_processes.Process) -> bool:
        return process.seen_at >= self.now - findings.ALIVE


class CheckRun(msgspec.Struct, frozen=True):
    at: int
    results: Sequence[table.Result]


async def read_health(ctx: context.Context) -> Health:
    now = ctx.clock()
    async with ctx.store.scanning() as tx:
        running = await stored_processes.seen_since(tx, now - LISTED)
        used = await space.read(tx)
    disk_free, growth = await _disk(ctx, now=now)
    size = StoreSize(ctx.store.dialect, used.size, used.free, disk_free, growth)
    return Health(now, running, size, await operations_certificates.of_listeners(ctx))


async def _disk(ctx: context.Context, *, now: int) -> tuple[int | None, float | None]:
    """The free bytes of the disk of SQLite, and how much a day fills; that of a PostgreSQL server is not visible."""
    folder = open_store.sqlite_folder(ctx.settings.database.url)
    if folder is not None:
        with contextlib.suppress(OSError):
            free = (await asyncio.to_thread(shutil.disk_usage, folder)).free
            named = data.folders(ctx.settings)[0]
            return free, await data.daily_growth(ctx.store, hostname.short_name(), named, free=free, now=now)
    return None, None


class Checks:
    """The checks of this host and of the installation, as this process runs them on request."""

    def __init__(self) -> None:
        self._flights = caches.SingleFlight(1, what="checks")
        self._last: CheckRun | None = None

    async def read(self, ctx: context.Context) -> CheckRun:
        if self._last is not None and ctx.clock() - self._last.at < CHECKS_VALID:
            return self._last
        return await self._flights.join("checks", lambda: self._run(ctx))

    def latest(self, ctx: context.Context, *, renew: bool) -> CheckRun | None:
        """The results of the last run, without waiting: a run begins if there was none, or to `renew` old results."""
        is_old = self._last is None or ctx.clock() - self._last.at >= CHECKS_VALID
        if is_old and (renew or self._last is None):
            self._flights.start("checks", lambda: self._run(ctx))
        return self._last

    @property
    def is_running(self) -> bool:
        return "checks" in self._flights

    async def close(self) -> None:
        await self._flights.cancel()

    async def _run(self, ctx: context.Context) -> CheckRun:
        results = await table.run(await findings.of_context(ctx))
        self._last = CheckRun(ctx.clock(), results)
        return self._last


class OperatorState(msgspec.Struct, frozen=True):
    jobs: operator_jobs.Jobs
    checks: Checks = msgspec.field(default_factory=Checks)
    queue: operator_queue.QueueSummary = msgspec.field(default_factory=operator_queue.QueueSummary)

    async def close(self) -> None:
        await self.checks.close()
        await self.queue.close()
        await self.jobs.close()
