"""The table of roles, and the one place that starts them: one Context, one TaskGroup, one way to stop.

A role starts, tells where it listens, and works until `stopping` is set. The first SIGTERM or SIGINT sets it: the doors
stop accepting, finish what is under way within `http.grace_seconds`, and the process ends with 0. A second signal ends
it at once, by the system's own hand; nothing that was acknowledged is lost by that. A role that fails stops the others
in the same order, and the process ends with 1.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from postroad import config
from postroad.model import actors
from postroad.roles import door_processes, doors, engines, keeping, maintenance, running
from postroad.roles.doors import ROUTES as ROUTES
from postroad.roles.duties import Addresses as Addresses
from postroad.roles.duties import CannotListen as CannotListen
from postroad.roles.duties import Duty as Duty
from postroad.roles.duties import Started as Started
from postroad.roles.duties import StartError as StartError
from postroad.roles.duties import cannot_listen as cannot_listen
from postroad.roles.running import RoleFailed as RoleFailed
from postroad.services import context as services_context
from postroad.services import gauges, inbox
from postroad.telemetry import logs

ROLES: Final[Mapping[str, running.Start]] = {
    "api": doors.start_api,
    "delivery": engines.start_delivery,
    "inbound": doors.start_inbound,
    "maintenance": maintenance.start_maintenance,
    "submission": doors.start_submission,
    "webhooks": engines.start_webhooks,
}


async def run(
    settings: config.Settings,
    names: Sequence[str],
    *,
    log: logs.Logger,
    apart: door_processes.Doors | None = None,
    mail: inbox.Inbox | None = None,
    prepare: Callable[[services_context.Context], Awaitable[None]] | None = None,
    announce: Callable[[Addresses], None] | None = None,
) -> None:
    """Run these roles until a signal, those `apart` in their own processes.

    `prepare` comes before anyone listens, `announce` when all have started.
    """

    def tell(addresses: Addresses) -> None:
        log.info("started", roles=list(names), **{what: str(where) for what, where in addresses.items()})
        if announce:
            announce(addresses)

    starts = {name: ROLES[name] for name in names if not apart or name not in apart.roles}
    if apart and apart.children:
        starts["doors"] = functools.partial(keeping.start, apart=apart)
    if settings.metrics.listen:
        starts["metrics"] = doors.start_metrics
    async with services_context.open_context(settings, actor=actors.SERVICE) as context:
        looks = gauges.Gauges()
        duty = Duty(context, log, asyncio.Event(), functools.partial(looks.text, context), mail=mail)
        if prepare:
            await prepare(context)
        with running.stopped_by_signals(duty):
            await running.run_all(duty, starts, announce=tell)
    log.info("stopped")
