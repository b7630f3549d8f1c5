"""What tidies up behind the others, and asks DNS about sender domains again. No failure here stops anything.

The two run beside each other: DNS that does not answer keeps nothing from being tidied up.
"""

import asyncio
import contextlib
import dataclasses
from typing import Final

from postroad import errors
from postroad.roles import duties
from postroad.services import domain_watch, sweeping, walking

SWEEP_EVERY_SECONDS: Final = 60
# When there was more than one sweep has time for.
SWEEP_AGAIN_SECONDS: Final = 1
# Shorter than the usual grace time, so that a sweep holds up no stop; what it did not reach goes with the next one.
SWEEP_SECONDS: Final = 15
CHECK_EVERY_SECONDS: Final = 60


async def start_maintenance(duty: duties.Duty) -> duties.Started:
    """What tidies up behind the others."""

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_keep_sweeping(duty))
            tasks.create_task(_keep_checking(duty))

    return duties.Started(work)


async def _keep_sweeping(duty: duties.Duty) -> None:
    while not duty.stopping.is_set():
        has_more = await _sweep(duty)
        await _rest(duty, SWEEP_AGAIN_SECONDS if has_more else SWEEP_EVERY_SECONDS)


async def _keep_checking(duty: duties.Duty) -> None:
    if not duty.context.settings.domains.check_hours:
        return
    while not duty.stopping.is_set():
        await _check_domains(duty)
        await _rest(duty, CHECK_EVERY_SECONDS)


async def _rest(duty: duties.Duty, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await duty.stopping.wait()


async def _sweep(duty: duties.Duty) -> bool:
    """Forget what has expired; whether there is more. Tomorrow will do as well: no failure here stops anything."""
    try:
        async with asyncio.timeout(SWEEP_SECONDS):
            swept = await sweeping.sweep(duty.context)
    except (errors.ServiceUnavailable, errors.TemporaryFailure) as trouble:
        duty.log.warning("sweep_put_off", error=trouble.message)
        return False
    except Exception:
        duty.log.exception("sweep_failed")
        return False
    else:
        duty.log.debug("swept", **dataclasses.asdict(swept))
        for account_id in swept.resumed:
            duty.log.info("account_resumed", account_id=account_id)
        return swept.has_more


async def _check_domains(duty: duties.Duty) -> None:
    """Ask DNS about sender domains that are due. A stop does not wait for DNS: what is cut off is due again later."""
    checking = asyncio.create_task(_check_due(duty))
    stop = asyncio.create_task(duty.stopping.wait())
    try:
        await asyncio.wait([checking, stop], return_when=asyncio.FIRST_COMPLETED)
    finally:
        await walking.cancel(stop)
        await walking.cancel(checking)


async def _check_due(duty: duties.Duty) -> None:
    try:
        checked = await domain_watch.check_due(duty.context, log=duty.log)
    except Exception:
        duty.log.exception("domain_checks_failed")
    else:
        duty.log.debug("domains_checked", domains=checked)
