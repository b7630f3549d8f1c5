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
from postroad.roles import engines, listeners, maintenance, supervisor, writer
from postroad.roles import frontends as roles_frontends
from postroad.roles.listeners import ROUTES as ROUTES
from postroad.roles.role import Addresses as Addresses
from postroad.roles.role import CannotListen as CannotListen
from postroad.roles.role import RoleContext as RoleContext
from postroad.roles.role import Started as Started
from postroad.roles.role import StartError as StartError
from postroad.roles.role import cannot_listen as cannot_listen
from postroad.roles.supervisor import RoleFailed as RoleFailed
from postroad.services import context as services_context
from postroad.services.maintenance import gauges
from postroad.services.messages import dev_inbox
from postroad.telemetry import logs

ROLES: Final[Mapping[str, supervisor.Start]] = {
    "api": listeners.start_api,
    "delivery": engines.start_delivery,
    "inbound": listeners.start_inbound,
    "maintenance": maintenance.start_maintenance,
    "submission": listeners.start_submission,
    "webhooks": engines.start_webhooks,
}


async def run(
    settings: config.Settings,
    names: Sequence[str],
    *,
    log: logs.Logger,
    frontends: roles_frontends.Doors | None = None,
    mail: dev_inbox.Inbox | None = None,
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

    starts = {name: ROLES[name] for name in names if not frontends or name not in frontends.roles}
    if frontends and frontends.children:
        starts["doors"] = functools.partial(writer.start, frontends=frontends)
    if settings.metrics.listen:
        starts["metrics"] = listeners.start_metrics
    async with services_context.open_context(settings, actor=actors.SERVICE) as context:
        looks = gauges.Gauges()
        role_context = RoleContext(context, log, asyncio.Event(), functools.partial(looks.text, context), mail=mail)
        if prepare:
            await prepare(context)
        with supervisor.stopped_by_signals(role_context):
            await supervisor.run_all(role_context, starts, announce=tell)
    log.info("stopped")
