"""The table of roles, and the one place that starts them: one Context, one TaskGroup, one way to stop.

A role starts, tells where it listens, and works until `stopping` is set. The first SIGTERM or SIGINT sets it: the doors
stop accepting, finish what is under way within `http.grace_seconds`, and the process ends with 0. A second signal ends
it at once, by the system's own hand; nothing that was acknowledged is lost by that. A role that fails stops the others
in the same order, and the process ends with 1.
"""

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import postroad
from postroad import config
from postroad.api import (
    application,
    documentation,
    emails,
    health,
    metrics,
    routing,
    v1_account,
    v1_api_keys,
    v1_auth,
    v1_credentials,
    v1_domains,
    v1_inbox,
    v1_messages,
    v1_templates,
    v1_webhook,
)
from postroad.delivery import engine
from postroad.inbound import return_paths
from postroad.network import http_limits, http_listener, smtp_listener, this_host
from postroad.services import access, inbox, sweeping
from postroad.services import context as services_context
from postroad.telemetry import logs
from postroad.webhooks import engine as webhooks_engine

SWEEP_EVERY_SECONDS: Final = 60
# Shorter than the usual grace time, so that a sweep holds up no stop; what it did not reach goes with the next one.
SWEEP_SECONDS: Final = 15
# A few who scrape, and a few who ask whether the process lives.
METRICS_CONNECTIONS: Final = 64
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

# What the HTTP door offers, in the order in which the documentation shows it. Health comes with the role.
ROUTES: Final[tuple[routing.Route[services_context.Context], ...]] = (
    *emails.ROUTES,
    *v1_auth.ROUTES,
    *v1_account.ROUTES,
    *v1_messages.ROUTES,
    *v1_credentials.ROUTES,
    *v1_api_keys.ROUTES,
    *v1_domains.ROUTES,
    *v1_templates.ROUTES,
    *v1_webhook.ROUTES,
)

Addresses = Mapping[str, config.Endpoint]


class StartError(Exception):
    """A role cannot start; the message says why."""


class RoleFailed(Exception):
    """A role ended that should not have; the log says why."""


@dataclass(frozen=True, slots=True)
class Duty:
    """What a role is given."""

    context: services_context.Context
    log: logs.Logger
    stopping: asyncio.Event
    # Where the mailbox simulator puts its mail, in `postroad dev`.
    mail: inbox.Inbox | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A role that has started: where it listens, and the work that ends soon after `stopping` is set."""

    work: Callable[[], Awaitable[None]]
    addresses: Addresses = field(default_factory=dict)


async def start_api(duty: Duty) -> Started:
    """The HTTP door."""
    settings, ctx = duty.context.settings, duty.context
    received = v1_inbox.routes(duty.mail) if duty.mail is not None else ()
    routes = (*ROUTES, *received, *health.routes(draining=duty.stopping.is_set))
    door = application.Application(
        ctx,
        (*routes, *documentation.routes(routes, version=postroad.__version__), *metrics.routes()),
        authenticate=access.authenticate,
        require=access.require,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=duty.log,
        counted=ctx.metrics,
    )
    return await _serve_http(duty, door, "http", connections=settings.http.connections)


async def start_metrics(duty: Duty) -> Started:
    """A small listener for those who watch the process; no role, because every process may have one."""
    ctx = duty.context
    door = application.Application(
        ctx,
        (*metrics.routes(), *health.routes(draining=duty.stopping.is_set)),
        authenticate=access.authenticate,
        require=access.require,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=duty.log,
        counted=ctx.metrics,
    )
    return await _serve_http(duty, door, "metrics", connections=METRICS_CONNECTIONS)


async def _serve_http(
    duty: Duty, door: application.Application[services_context.Context], section: str, *, connections: int
) -> Started:
    listener = http_listener.HttpListener(door, refuse=door.refuse, limits=http_limits.Limits(connections=connections))
    return await _listen(duty, listener, section, grace_seconds=duty.context.settings.http.grace_seconds)


async def _listen(
    duty: Duty,
    listener: http_listener.HttpListener | smtp_listener.SmtpListener,
    section: str,
    *,
    grace_seconds: float,
) -> Started:
    """Listen at the address that `listen` of a section names, until the stop."""
    endpoint = config.endpoint(getattr(duty.context.settings, section).listen, name=f"{section}.listen")
    try:
        await listener.start(endpoint.host, endpoint.port)
    except OSError as problem:
        raise cannot_listen(endpoint, problem) from problem

    async def work() -> None:
        try:
            await duty.stopping.wait()
        finally:
            await listener.stop(grace_seconds=grace_seconds)

    return Started(work, {section: config.Endpoint(*listener.address)})


async def start_delivery(duty: Duty) -> Started:
    """The engine that brings mail to its destinations."""
    deliverer = await engine.open_engine(duty.context, log=duty.log)

    async def work() -> None:
        await deliverer.run(duty.stopping)

    return Started(work)


async def start_webhooks(duty: Duty) -> Started:
    """The engine that tells customers what became of their mail."""
    teller = webhooks_engine.Engine(duty.context, log=duty.log)

    async def work() -> None:
        await teller.run(duty.stopping)

    return Started(work)


async def start_inbound(duty: Duty) -> Started:
    """The door for mail that comes back. It is open only when it has an address; else the role has nothing to do."""
    ctx, settings = duty.context, duty.context.settings
    if not settings.inbound.listen:

        async def rest() -> None:
            duty.log.info("inbound_closed", reason="inbound.listen is not set")
            await duty.stopping.wait()

        return Started(rest)
    listener = return_paths.listener(ctx, name=settings.delivery.hostname or await this_host.name(), log=duty.log)
    return await _listen(duty, listener, "inbound", grace_seconds=settings.inbound.grace_seconds)


async def start_maintenance(duty: Duty) -> Started:
    """What tidies up behind the others."""

    async def work() -> None:
        while not duty.stopping.is_set():
            await _sweep(duty)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SWEEP_EVERY_SECONDS):
                    await duty.stopping.wait()

    return Started(work)


ROLES: Final[Mapping[str, Callable[[Duty], Awaitable[Started]]]] = {
    "api": start_api,
    "delivery": start_delivery,
    "inbound": start_inbound,
    "maintenance": start_maintenance,
    "webhooks": start_webhooks,
}


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
    async with services_context.open_context(settings) as context:
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
            started["metrics"] = await start_metrics(duty)
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


async def _sweep(duty: Duty) -> None:
    """Forget what has expired. Tomorrow will do as well, so nothing that goes wrong here stops anything."""
    try:
        async with asyncio.timeout(SWEEP_SECONDS):
            swept = await sweeping.sweep(duty.context)
    except Exception:
        duty.log.exception("sweep_failed")
    else:
        duty.log.debug(
            "swept",
            idempotency_keys=swept.idempotency_keys,
            tokens=swept.tokens,
            pools=swept.pools,
            webhook_deliveries=swept.webhook_deliveries,
            webhook_secrets=swept.webhook_secrets,
        )


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


def cannot_listen(where: config.Endpoint, problem: OSError) -> StartError:
    """What to tell somebody who chose an address that cannot be had."""
    return StartError(f"cannot listen on {where}: {_reason(problem)}")


def _reason(problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return "another program listens there"
    return os.strerror(problem.errno) if problem.errno and problem.errno > 0 else str(problem)
