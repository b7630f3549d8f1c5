"""The table of roles, and the one place that starts them: one Context, one TaskGroup, one way to stop.

A role starts, tells where it listens, and works until `stopping` is set. The first SIGTERM or SIGINT sets it: the doors
stop accepting, finish what is under way within `http.grace_seconds`, and the process ends with 0. A second signal ends
it at once, by the system's own hand; nothing that was acknowledged is lost by that. A role that fails stops the others
in the same order, and the process ends with 1.
"""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Final

from postroad import config
from postroad.model import actors
from postroad.roles import doors, engines, maintenance
from postroad.roles.doors import ROUTES as ROUTES
from postroad.roles.duties import Addresses as Addresses
from postroad.roles.duties import CannotListen as CannotListen
from postroad.roles.duties import Duty as Duty
from postroad.roles.duties import Started as Started
from postroad.roles.duties import StartError as StartError
from postroad.roles.duties import cannot_listen as cannot_listen
from postroad.services import context as services_context
from postroad.services import inbox
from postroad.telemetry import logs

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

ROLES: Final[Mapping[str, Callable[[Duty], Awaitable[Started]]]] = {
    "api": doors.start_api,
    "delivery": engines.start_delivery,
    "inbound": doors.start_inbound,
    "maintenance": maintenance.start_maintenance,
    "submission": doors.start_submission,
    "webhooks": engines.start_webhooks,
}


class RoleFailed(Exception):
    """A role ended that should not have; the log says why."""


async def run(
    settings: config.Settings,
    names: Sequence[str],
    *,
    log: logs.Logger,
    mail: inbox.Inbox | None = None,
    prepare: Callable[[services_context.Context], Awaitable[None]] | None = None,
    announce: Callable[[Addresses], None] | None = None,
) -> None:
    """Run these roles until a signal. `prepare` comes before anyone listens, `announce` when all have started."""
    stopping = asyncio.Event()
    async with services_context.open_context(settings, actor=actors.SERVICE) as context:
        duty = Duty(context, log, stopping, mail)
        if prepare:
            await prepare(context)
        with _stopped_by_signals(duty):
            await _run_all(duty, names, announce)
    log.info("stopped")


async def _run_all(duty: Duty, names: Sequence[str], announce: Callable[[Addresses], None] | None) -> None:
    started: dict[str, Started] = {}
    failed: list[str] = []
    try:
        for name in names:
            started[name] = await ROLES[name](duty)
        if duty.context.settings.metrics.listen:
            started["metrics"] = await doors.start_metrics(duty)
        addresses = {what: where for role in started.values() for what, where in role.addresses.items()}
        duty.log.info("started", roles=list(names), **{what: str(where) for what, where in addresses.items()})
        if announce:
            announce(addresses)
    except BaseException:
        duty.stopping.set()
        raise
    finally:
        # Also after a failed start: those that have started stop in order, because `stopping` is set by then.
        async with asyncio.TaskGroup() as group:
            for name, role in started.items():
                group.create_task(_guard(name, role, duty, failed))
    if failed:
        raise RoleFailed(f"the role {failed[0]} failed, so the service has stopped; the log says why")


async def _guard(name: str, role: Started, duty: Duty, failed: list[str]) -> None:
    """One role's work; when it ends, for whatever reason, the others stop too."""
    try:
        await role.work()
    except Exception:
        duty.log.exception("role_failed", role=name)
        failed.append(name)
    else:
        if not duty.stopping.is_set():
            duty.log.error("role_ended", role=name)
            failed.append(name)
    finally:
        duty.stopping.set()


@contextlib.contextmanager
def _stopped_by_signals(duty: Duty) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def stop(number: signal.Signals) -> None:
        duty.log.info("stopping", signal=number.name)
        duty.stopping.set()
        for each in SIGNALS:
            loop.remove_signal_handler(each)
            signal.signal(each, signal.SIG_DFL)

    for number in SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
