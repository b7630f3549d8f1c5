"""What tidies up behind the others, and asks DNS about sender domains again. No failure here stops anything.

The two run beside each other: DNS that does not answer keeps nothing from being tidied up.
"""

import asyncio
import contextlib
import dataclasses
from typing import Final

from postroad import errors
from postroad.concurrency import poll_loop
from postroad.roles import role
from postroad.services.domains import monitor
from postroad.services.maintenance import cleanup

CLEANUP_INTERVAL_SECONDS: Final = 60
# When there was more than one sweep has time for.
CLEANUP_AGAIN_SECONDS: Final = 1
# Shorter than the usual grace time, so that a sweep holds up no stop; what it did not reach goes with the next one.
CLEANUP_TIMEOUT_SECONDS: Final = 15
CHECK_INTERVAL_SECONDS: Final = 60


async def start_maintenance(role_context: role.RoleContext) -> role.Started:
    """What tidies up behind the others."""

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_clean_up_forever(role_context))
            tasks.create_task(_check_domains_forever(role_context))

    return role.Started(work)


async def _clean_up_forever(role_context: role.RoleContext) -> None:
    while not role_context.stopping.is_set():
        has_more = await _clean_up(role_context)
        await _sleep(role_context, CLEANUP_AGAIN_SECONDS if has_more else CLEANUP_INTERVAL_SECONDS)


async def _check_domains_forever(role_context: role.RoleContext) -> None:
    if not role_context.context.settings.domains.check_hours:
        return
    while not role_context.stopping.is_set():
        await _check_domains(role_context)
        await _sleep(role_context, CHECK_INTERVAL_SECONDS)


async def _sleep(role_context: role.RoleContext, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await role_context.stopping.wait()


async def _clean_up(role_context: role.RoleContext) -> bool:
    """Forget what has expired; whether there is more. Tomorrow will do as well: no failure here stops anything."""
    try:
        async with asyncio.timeout(CLEANUP_TIMEOUT_SECONDS):
            swept = await cleanup.sweep(role_context.context)
    except (errors.ServiceUnavailable, errors.TemporaryFailure) as error:
        role_context.log.warning("sweep_put_off", error=error.message)
        return False
    except Exception:
        role_context.log.exception("sweep_failed")
        return False
    else:
        role_context.log.debug("swept", **dataclasses.asdict(swept))
        for account_id in swept.resumed:
            role_context.log.info("account_resumed", account_id=account_id)
        return swept.has_more


async def _check_domains(role_context: role.RoleContext) -> None:
    """Ask DNS about sender domains that are due. A stop does not wait for DNS: what is cut off is due again later."""
    checking = asyncio.create_task(_check_due(role_context))
    stop = asyncio.create_task(role_context.stopping.wait())
    try:
        await asyncio.wait([checking, stop], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await poll_loop.cancel(stop)
        await poll_loop.cancel(checking)


async def _check_due(role_context: role.RoleContext) -> None:
    try:
        checked = await monitor.check_due(role_context.context, log=role_context.log)
    except Exception:
        role_context.log.exception("domain_checks_failed")
    else:
        role_context.log.debug("domains_checked", domains=checked)
