"""The maintenance role: it deletes expired data, checks DNS, sends TLS reports and notices, renews the certificate.

All run concurrently, so slow DNS does not delay the cleanup. Failures are logged and never stop the service.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Final

from postroad import context
from postroad.model.units import times
from postroad.roles import role
from postroad.services.domains import dns_checks
from postroad.services.operations import certificates, cleanup, partitions, tls_reports
from postroad.services.operations.notices import sender as notice_sender
from postroad.services.operations.notices import watch as notice_watch
from postroad.storage.engine import store
from postroad.storage.operations import processes

CLEANUP_INTERVAL_SECONDS: Final = 60
# After a cleanup that did not finish within its time.
CLEANUP_AGAIN_SECONDS: Final = 1
# Shorter than the default grace period, so that a cleanup does not delay shutdown; the next one continues.
CLEANUP_TIMEOUT_SECONDS: Final = 15
PARTITION_INTERVAL_SECONDS: Final = 3600
# Far less than the shortest retention period.
MAX_CLOCK_SKEW: Final = times.HOUR
CHECK_INTERVAL_SECONDS: Final = 60
REPORT_INTERVAL_SECONDS: Final = 60
RENEWAL_INTERVAL_SECONDS: Final = 60
# Somebody may wait for a password link.
NOTICE_INTERVAL_SECONDS: Final = 5
WATCH_INTERVAL_SECONDS: Final = 300


class WrongClock(Exception):
    """The clock of this host is not to be trusted."""


async def start_maintenance(role_context: role.RoleContext) -> role.Started:
    async def work() -> None:
        settings = role_context.context.settings
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_clean_up_forever(role_context))
            tasks.create_task(role.repeat(role_context, _keep_partitions, seconds=PARTITION_INTERVAL_SECONDS))
            if settings.domains.check_hours:
                tasks.create_task(role.repeat(role_context, _check_domains, seconds=CHECK_INTERVAL_SECONDS))
            if settings.tls_reports.sender:
                tasks.create_task(_send_tls_reports_forever(role_context))
            if settings.acme.names:
                tasks.create_task(_renew_certificate_forever(role_context))
            tasks.create_task(role.repeat(role_context, _send_notices, seconds=NOTICE_INTERVAL_SECONDS))
            tasks.create_task(_watch_forever(role_context))

    return role.Started(work)


async def _clean_up_forever(role_context: role.RoleContext) -> None:
    while not role_context.stopping.is_set():
        has_more = await _clean_up(role_context)
        await role.sleep(role_context, CLEANUP_AGAIN_SECONDS if has_more else CLEANUP_INTERVAL_SECONDS)


async def _keep_partitions(role_context: role.RoleContext) -> None:
    with _logged(role_context, deferred="partitions_deferred", failed="partitions_failed"):
        try:
            await _refuse_wrong_clock(role_context.context)
            steps = await partitions.keep(role_context.context)
        except (store.NotPermitted, store.ConstraintViolated, partitions.TooMuchLateMail, WrongClock) as problem:
            # `postroad doctor` says what to do. Expired mail is deleted row by row.
            role_context.log.warning("partitions_deferred", error=str(problem))
        else:
            role_context.log.debug("partitions_kept", steps=steps)


async def _refuse_wrong_clock(ctx: context.Context) -> None:
    """Partitions are dropped at once: with a clock that is a year ahead, all mail would be."""
    async with ctx.store.reading() as tx:
        difference = abs(ctx.clock() - await processes.database_time(tx))
    if difference > MAX_CLOCK_SKEW:
        raise WrongClock(f"the clocks of this host and of the database differ by {difference // times.SECOND} seconds")


async def _check_domains(role_context: role.RoleContext) -> None:
    with _logged(role_context, deferred="domain_checks_deferred", failed="domain_checks_failed"):
        checked = await dns_checks.check_due(role_context.context, log=role_context.log)
        role_context.log.debug("domains_checked", domains=checked)


async def _send_tls_reports_forever(role_context: role.RoleContext) -> None:
    sender = tls_reports.Reporter(role_context.context, role_context.log)

    async def send_due(role_context: role.RoleContext) -> None:
        with _logged(role_context, deferred="tls_reports_deferred", failed="tls_reports_failed"):
            reports = await sender.report_due()
            role_context.log.debug("tls_reports_done", reports=reports)

    await role.repeat(role_context, send_due, seconds=REPORT_INTERVAL_SECONDS)


async def _renew_certificate_forever(role_context: role.RoleContext) -> None:
    renewer = certificates.Renewer(role_context.context, role_context.log)

    async def renew(role_context: role.RoleContext) -> None:
        with _logged(role_context, deferred="certificate_renewal_deferred", failed="certificate_renewal_failed"):
            await renewer.renew()

    await role.repeat(role_context, renew, seconds=RENEWAL_INTERVAL_SECONDS)


async def _send_notices(role_context: role.RoleContext) -> None:
    with _logged(role_context, deferred="notices_deferred", failed="notices_failed"):
        await notice_sender.send_due(role_context.context, log=role_context.log)


async def _watch_forever(role_context: role.RoleContext) -> None:
    async def look(role_context: role.RoleContext) -> None:
        with _logged(role_context, deferred="notices_deferred", failed="notices_failed"):
            await notice_watch.look(role_context.context)

    # Not at once: after a start, mail that has waited is sent first.
    await role.sleep(role_context, WATCH_INTERVAL_SECONDS)
    await role.repeat(role_context, look, seconds=WATCH_INTERVAL_SECONDS)


async def _clean_up(role_context: role.RoleContext) -> bool:
    """Delete expired data; returns whether there is more."""
    has_more = False
    with _logged(role_context, deferred="cleanup_deferred", failed="cleanup_failed"):
        try:
            async with asyncio.timeout(CLEANUP_TIMEOUT_SECONDS):
                swept = await cleanup.sweep(role_context.context)
        except TimeoutError:
            role_context.log.warning("cleanup_deferred", error="the database is slow; the rest follows later")
        else:
            role_context.log.debug("cleanup_done", **dataclasses.asdict(swept))
            for account_id in swept.resumed:
                role_context.log.info("account_resumed", account_id=account_id)
            has_more = swept.has_more
    return has_more


@contextlib.contextmanager
def _logged(role_context: role.RoleContext, *, deferred: str, failed: str) -> Iterator[None]:
    """Log a failure of a task: while the database is unavailable, it is only deferred."""
    try:
        yield
    except store.UNAVAILABLE as error:
        role_context.log.warning(deferred, error=error.message)
    except Exception:
        role_context.log.exception(failed)
