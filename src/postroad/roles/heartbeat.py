"""The heartbeat: every `serve` process reports to the store that it runs, with its roles and rates.

`postroad doctor` learns from it which roles nobody runs and what to expect on this host. A report is one small
transaction.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from postroad import build_version
from postroad.model import times
from postroad.network import hostname
from postroad.roles import role
from postroad.storage import processes, store
from postroad.telemetry import rates

INTERVAL_SECONDS: Final = 30
# A database that does not answer must not delay the end of the process.
WRITE_SECONDS: Final = 5.0
# Long enough that nobody still asks about them.
SWEEP_SECONDS: Final = 24 * 60 * 60


async def start(role_context: role.RoleContext, *, names: Sequence[str]) -> role.Started:
    """Report the roles of this process until it stops."""
    ctx, started_at = role_context.context, role_context.context.clock()
    name, host = hostname.process_name(), hostname.short_name()

    meter = rates.RateMeter(ctx.metrics)

    async def report(tx: store.Transaction) -> None:
        now = ctx.clock()
        measured = msgspec.json.encode(meter.read()).decode()
        number, version = os.getpid(), build_version.current()
        process = processes.Process(name, host, number, tuple(names), version, started_at, now, measured)
        await processes.put(tx, process)
        await processes.sweep(tx, before=now - SWEEP_SECONDS * times.SECOND)

    async def work() -> None:
        while not role_context.stopping.is_set():
            await _attempt(role_context, report)
            await role.sleep(role_context, INTERVAL_SECONDS)
        await _attempt(role_context, lambda tx: processes.remove(tx, name))

    return role.Started(work)


async def _attempt(role_context: role.RoleContext, write: Callable[[store.Transaction], Awaitable[None]]) -> None:
    """Write, if the store is available; the next report follows soon, and a process that is gone is soon noticed."""
    try:
        async with asyncio.timeout(WRITE_SECONDS), role_context.context.store.transaction() as tx:
            await write(tx)
    except store.UNAVAILABLE as error:
        role_context.log.warning("heartbeat_failed", error=error.message)
    except TimeoutError:
        role_context.log.warning("heartbeat_failed", error=f"not stored within {WRITE_SECONDS:.0f} seconds")
