"""The table of roles, and the function that runs them with one Context and one TaskGroup.

A role starts, reports its listen addresses and works until `stopping` is set. The first SIGTERM or SIGINT sets
`draining`: `/readyz` responds 503, and everything else works, but no connection is kept after its next response. After
`http.drain_seconds` it sets `stopping`: listeners close, requests in progress finish within their grace period, and the
process exits with 0. A second signal kills the process; acknowledged mail is durable by then. A role that fails stops
the others at once, and the process exits with 1.
"""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from postroad import build_version, config
from postroad import context as services_context
from postroad.delivery import engine
from postroad.model.people import callers
from postroad.network import listener
from postroad.roles import background, composition, listeners, maintenance, role, supervisor
from postroad.roles import frontends as roles_frontends
from postroad.services.messages import dev_inbox
from postroad.services.operations import gauges
from postroad.storage.engine import postgres  # noqa: F401 - imported on demand, and here before frontends are forked
from postroad.telemetry import logs
from postroad.webhooks import engine as webhooks_engine


async def start_delivery(role_context: role.RoleContext) -> role.Started:
    delivery_engine = await engine.open_engine(role_context.context, log=role_context.log)

    async def work() -> None:
        await delivery_engine.run(role_context.stopping)

    return role.Started(work)


async def start_webhooks(role_context: role.RoleContext) -> role.Started:
    webhook_engine = webhooks_engine.Engine(role_context.context, log=role_context.log)

    async def work() -> None:
        await webhook_engine.run(role_context.stopping)

    return role.Started(work)


ROLES: Final[Mapping[str, supervisor.Start]] = {
    "api": listeners.start_api,
    "delivery": start_delivery,
    "inbound": listeners.start_inbound,
    "maintenance": maintenance.start_maintenance,
    "submission": listeners.start_submission,
    "webhooks": start_webhooks,
}


async def run(
    settings: config.Settings,
    names: Sequence[str],
    *,
    log: logs.Logger,
    frontends: roles_frontends.Frontends | None = None,
    inherited: Mapping[str, listener.BoundSockets] | None = None,
    load: supervisor.Load | None = None,
    mail: dev_inbox.Inbox | None = None,
    prepare: Callable[[services_context.Context], Awaitable[None]] | None = None,
    announce: Callable[[role.Addresses], None] | None = None,
    notify: Callable[[str], None] = lambda _state: None,
) -> None:
    """Run these roles until a signal. The roles of `frontends` run in their own processes.

    `inherited` are sockets that are bound already, by setting. With `load`, SIGHUP reads the settings again. `prepare`
    is called before any role starts, `announce` when all have started, `notify` with what a service manager may know.
    """

    def announce_started(addresses: role.Addresses) -> None:
        listening = {what: str(where) for what, where in addresses.items()}
        log.info("started", version=build_version.current(), roles=list(names), **listening)
        notify("READY=1")
        if announce:
            announce(addresses)

    starts = {name: ROLES[name] for name in names if not frontends or name not in frontends.roles}
    if frontends and frontends.children:
        starts["frontends"] = functools.partial(roles_frontends.start_writer, frontends=frontends)
    if settings.metrics.listen:
        starts["metrics"] = listeners.start_metrics
    starts["wakeups"] = functools.partial(background.start_wakeups, names=names)
    starts["heartbeat"] = functools.partial(background.start_heartbeat, names=names)
    if settings.testing.hourly_checks:
        starts["checks"] = background.start_checks
    async with composition.open_context(settings, actor=callers.SERVICE, log=log) as context:
        store_gauges = gauges.Gauges()
        role_context = role.RoleContext(
            context,
            log,
            asyncio.Event(),
            functools.partial(store_gauges.text, context),
            bound=inherited or {},
            acme=background.watched_certificate(context, log),
            mail=mail,
        )
        await context.queue_limit.read_disk()
        if prepare:
            await prepare(context)
        with supervisor.stopped_by_signals(role_context, notify), supervisor.reloading(role_context, load):
            await supervisor.run_all(
                role_context, background.with_certificate(role_context, starts), announce=announce_started
            )
    log.info("stopped")
