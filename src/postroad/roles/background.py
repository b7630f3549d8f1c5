"""What a process runs beside its roles: heartbeat, checks, wake-ups, and its certificate."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec

from postroad import build_version, context
from postroad.model.units import times
from postroad.network import hostname
from postroad.roles import role, supervisor
from postroad.services.operations import certificates
from postroad.services.operations.checks import monitor
from postroad.storage.engine import postgres, store
from postroad.storage.operations import processes
from postroad.telemetry import logs, metrics

# The heartbeat: every `serve` process reports to the store that it runs, with its roles and rates.
#
# `postroad doctor` learns from it which roles nobody runs and what to expect on this host. A report is one small
# transaction.

HEARTBEAT_SECONDS: Final = 30
# A database that does not answer must not delay the end of the process.
HEARTBEAT_WRITE_SECONDS: Final = 5.0
# Long enough that nobody still asks about them.
HEARTBEAT_SWEEP_SECONDS: Final = 24 * 60 * 60


async def start_heartbeat(role_context: role.RoleContext, *, names: Sequence[str]) -> role.Started:
    """Report the roles of this process until it stops."""
    ctx, started_at = role_context.context, role_context.context.clock()
    name, host = hostname.process_name(), hostname.short_name()

    meter = metrics.RateMeter(ctx.metrics)
    version = build_version.current()
    # Once: during a roll-out the older version reports, too.
    await _write_heartbeat(role_context, lambda tx: processes.record_version(tx, version))

    async def report(tx: store.Transaction) -> None:
        now = ctx.clock()
        measured = msgspec.json.encode(meter.read()).decode()
        process = processes.Process(name, host, os.getpid(), tuple(names), version, started_at, now, measured)
        await processes.put(tx, process)
        await processes.sweep(tx, before=now - HEARTBEAT_SWEEP_SECONDS * times.SECOND)

    async def work() -> None:
        while not role_context.stopping.is_set():
            await _write_heartbeat(role_context, report)
            await role.sleep(role_context, HEARTBEAT_SECONDS)
        await _write_heartbeat(role_context, lambda tx: processes.remove(tx, name))

    return role.Started(work)


async def _write_heartbeat(
    role_context: role.RoleContext, write: Callable[[store.Transaction], Awaitable[None]]
) -> None:
    """Write, if the store is available; the next report follows soon, and a process that is gone is soon noticed."""
    try:
        async with asyncio.timeout(HEARTBEAT_WRITE_SECONDS), role_context.context.store.transaction() as tx:
            await write(tx)
    except store.UNAVAILABLE as error:
        role_context.log.warning("heartbeat_failed", error=error.message)
    except TimeoutError:
        role_context.log.warning("heartbeat_failed", error=f"not stored within {HEARTBEAT_WRITE_SECONDS:.0f} seconds")


CHECKS_INTERVAL_SECONDS: Final = 60 * 60
# By then this process and those that started with it listen and have reported themselves.
FIRST_CHECKS_SECONDS: Final = 5 * 60


async def start_checks(role_context: role.RoleContext) -> role.Started:
    """Check this host every hour until the process stops."""
    checks = monitor.Monitor(role_context.context, role_context.log)

    async def run(role_context: role.RoleContext) -> None:
        try:
            await checks.run()
        except Exception:
            role_context.log.exception("checks_failed")

    async def work() -> None:
        await role.sleep(role_context, FIRST_CHECKS_SECONDS)
        await role.repeat(role_context, run, seconds=CHECKS_INTERVAL_SECONDS)

    return role.Started(work)


# Follows the certificate of `acme.names` in every process with listeners. It is read before they start.
#
# The maintenance role renews it.


def watched_certificate(ctx: context.Context, log: logs.Logger) -> certificates.AcmeCertificate | None:
    """The certificate of this process, if the service obtains it by itself."""
    return certificates.AcmeCertificate(ctx, log) if ctx.settings.acme.names else None


def with_certificate(
    role_context: role.RoleContext, starts: Mapping[str, supervisor.Start]
) -> Mapping[str, supervisor.Start]:
    """These roles, and before them the one that follows the certificate."""
    return starts if role_context.acme is None else {"certificates": _start_certificate, **starts}


async def _start_certificate(role_context: role.RoleContext) -> role.Started:
    followed = role_context.acme
    assert followed is not None  # noqa: S101 - `with_certificate` adds this role only then
    await followed.load()
    if followed.context is None:
        role_context.log.warning(
            "certificate_missing",
            names=list(role_context.context.settings.acme.names),
            detail="TLS listeners close connections until the maintenance role has obtained a certificate",
        )

    async def work() -> None:
        await followed.watch(role_context.stopping)

    return role.Started(work)


# An engine pauses for as long between two claims, so more wake-ups would come to nothing.
MIN_WAKEUP_SECONDS: Final = 0.005
# How often an idle connection is tried: one that nobody uses may be gone without anybody noticing.
WAKEUP_CHECK_SECONDS: Final = 30.0
RECONNECT_SECONDS: Final = 1.0
# The channels, and the roles whose engines wait for them.
MAIL, EVENTS = "postroad_mail", "postroad_events"
WAKEUP_ROLES: Final = {MAIL: "delivery", EVENTS: "webhooks"}


async def start_wakeups(role_context: role.RoleContext, *, names: Sequence[str]) -> role.Started:
    """Exchange wake-ups with other processes until this one stops."""

    async def work() -> None:
        if role_context.context.store.dialect == "postgres":
            await role.until_stopped(role_context, lambda given: _exchange_wakeups(given, names))
        await role_context.stopping.wait()

    return role.Started(work)


async def _exchange_wakeups(role_context: role.RoleContext, names: Sequence[str]) -> None:
    ctx = role_context.context
    events = {MAIL: ctx.mail_wakeup, EVENTS: ctx.webhook_wakeup}
    heard = {channel: event for channel, event in events.items() if WAKEUP_ROLES[channel] in names}
    sent = {channel: event for channel, event in events.items() if channel not in heard}
    while True:
        try:
            async with postgres.connected_wakeups(ctx.settings.database.url) as wakeups:
                if heard and not await wakeups.listen({channel: event.set for channel, event in heard.items()}):
                    role_context.log.info(
                        "notify_unavailable", reason="a connection pooler keeps no session for LISTEN"
                    )
                    heard = {}
                # What came while there was no connection.
                for event in events.values():
                    event.set()
                await _send_forever(wakeups, sent)
        except store.UNAVAILABLE as error:
            role_context.log.warning("wakeups_unavailable", error=error.message)
            await asyncio.sleep(RECONNECT_SECONDS)


async def _send_forever(wakeups: postgres.Wakeups, sent: Mapping[str, asyncio.Event]) -> None:
    """Send wake-ups until the connection is lost, which raises."""
    while True:
        await _wait_for_any([*sent.values(), wakeups.is_lost])
        channels = [channel for channel, event in sent.items() if event.is_set()]
        for channel in channels:
            sent[channel].clear()
        await wakeups.send(channels)
        await asyncio.sleep(MIN_WAKEUP_SECONDS)


async def _wait_for_any(events: Sequence[asyncio.Event]) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=WAKEUP_CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
