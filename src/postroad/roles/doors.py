"""The doors: HTTP, mail that customers hand in over SMTP, mail that comes back, and those who watch the process.

Each listens at the addresses that its settings name, until the stop; then it finishes what is under way.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import postroad
from postroad import config
from postroad.api import (
    authenticating,
    documentation,
    emails,
    health,
    metrics,
    v1_account,
    v1_api_keys,
    v1_auth,
    v1_credentials,
    v1_domains,
    v1_inbox,
    v1_journal,
    v1_messages,
    v1_statistics,
    v1_suppressions,
    v1_team,
    v1_templates,
    v1_trying_out,
    v1_webhook,
)
from postroad.dashboard import door as dashboard
from postroad.dashboard import site as sites
from postroad.inbound import return_paths
from postroad.network import (
    http_exchange,
    http_limits,
    http_listener,
    listening,
    server_tls,
    smtp_listener,
    this_host,
)
from postroad.roles import duties
from postroad.services import access
from postroad.services import context as services_context
from postroad.submission import listening as submission_listening
from postroad.web import application, forwarding, large_bodies, routing, switching

# A few who scrape, and a few who ask whether the process lives.
METRICS_CONNECTIONS: Final = 64

# What the HTTP door offers, in the order in which the documentation shows it. Health comes with the role.
ROUTES: Final[tuple[routing.Route[services_context.Context], ...]] = (
    *emails.ROUTES,
    *v1_auth.ROUTES,
    *v1_account.ROUTES,
    *v1_messages.ROUTES,
    *v1_trying_out.ROUTES,
    *v1_statistics.ROUTES,
    *v1_credentials.ROUTES,
    *v1_api_keys.ROUTES,
    *v1_domains.ROUTES,
    *v1_templates.ROUTES,
    *v1_suppressions.ROUTES,
    *v1_webhook.ROUTES,
    *v1_team.ROUTES,
    *v1_journal.ROUTES,
)
# What listens at the address of each setting is called this.
LISTENERS: Final = {
    "http.listen": "http",
    "metrics.listen": "metrics",
    "inbound.listen": "inbound",
    "submission.listen": "submission",
    "submission.tls_listen": "submission_tls",
}


async def start_api(duty: duties.Duty) -> duties.Started:
    """The HTTP door: the API, and the dashboard at the same address."""
    settings, ctx = duty.context.settings, duty.context
    received = v1_inbox.routes(duty.mail) if duty.mail is not None else ()
    described = (*ROUTES, *received, *health.routes(draining=duty.stopping.is_set))
    trusted = settings.http.trusted_proxies
    proxies = forwarding.Proxies(trusted) if trusted else None
    routes = (*described, *documentation.routes(described, version=postroad.__version__), *metrics.routes(duty.figures))
    door = application.Application(
        ctx,
        routes,
        authenticate=authenticating.authenticate,
        require=access.require,
        act=services_context.acting,
        proxies=proxies,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=duty.log,
        counted=ctx.metrics,
        large=large_bodies.LargeBodies(doors=duty.door_processes),
    )
    served: http_exchange.Application = door
    if settings.dashboard.enabled:
        site = sites.build(settings, mail=duty.mail, is_stopping=duty.stopping.is_set)
        pages = dashboard.application_of(ctx, site, proxies=proxies, log=duty.log)
        served = switching.Switch(door, pages, paths=[route.path for route in routes])
    return await _serve_http(duty, served, "http", refuse=door.refuse, connections=settings.http.connections)


async def start_metrics(duty: duties.Duty) -> duties.Started:
    """A small listener for those who watch the process; no role, because every process may have one."""
    ctx = duty.context
    door = application.Application(
        ctx,
        (*metrics.routes(duty.figures), *health.routes(draining=duty.stopping.is_set)),
        authenticate=authenticating.authenticate,
        require=access.require,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=duty.log,
        counted=ctx.metrics,
    )
    return await _serve_http(duty, door, "metrics", refuse=door.refuse, connections=METRICS_CONNECTIONS)


async def _serve_http(
    duty: duties.Duty,
    door: http_exchange.Application,
    section: str,
    *,
    refuse: http_exchange.Refuse,
    connections: int,
) -> duties.Started:
    listener = http_listener.HttpListener(door, refuse=refuse, limits=http_limits.Limits(connections=connections))
    return await _listen(duty, listener, section, grace_seconds=duty.context.settings.http.grace_seconds)


async def _listen(
    duty: duties.Duty,
    listener: http_listener.HttpListener | smtp_listener.SmtpListener,
    section: str,
    *,
    grace_seconds: float,
    key: str = "listen",
) -> duties.Started:
    """Listen at the address that a key of a section names, until the stop."""
    setting = f"{section}.{key}"
    bound = duty.bound.get(setting)
    if bound is None:
        (bound,) = await asyncio.to_thread(bind, duty.context.settings, setting)
    await listener.serve(bound)

    async def work() -> None:
        try:
            await duty.stopping.wait()
        finally:
            await listener.stop(grace_seconds=grace_seconds)

    return duties.Started(work, {LISTENERS[setting]: config.Endpoint(*listener.address)})


def is_set(settings: config.Settings, setting: str) -> bool:
    """Whether somebody is to listen at the address of a setting."""
    section, _, key = setting.partition(".")
    return bool(getattr(getattr(settings, section), key))


def bind(settings: config.Settings, setting: str, *, processes: int = 1) -> Sequence[listening.Bound]:
    """Claim the address that a setting names, for so many processes."""
    section, _, key = setting.partition(".")
    endpoint = config.endpoint(getattr(getattr(settings, section), key), name=setting)
    try:
        return listening.bind(endpoint.host, endpoint.port, processes=processes)
    except OSError as problem:
        raise duties.cannot_listen(endpoint, problem, setting=setting) from problem


async def start_inbound(duty: duties.Duty) -> duties.Started:
    """The door for mail that comes back. It is open only when it has an address; else the role has nothing to do."""
    ctx, settings = duty.context, duty.context.settings
    if not settings.inbound.listen:
        return _resting(duty, "inbound_closed", reason="inbound.listen is not set")
    listener = return_paths.listener(ctx, name=settings.delivery.hostname or await this_host.name(), log=duty.log)
    return await _listen(duty, listener, "inbound", grace_seconds=settings.inbound.grace_seconds)


async def start_submission(duty: duties.Duty) -> duties.Started:
    """The SMTP door. It is open only when it has an address; else the role has nothing to do."""
    ctx, chosen = duty.context, duty.context.settings.submission
    if not (chosen.listen or chosen.tls_listen):
        return _resting(duty, "submission_closed", reason="submission.listen and submission.tls_listen are not set")
    try:
        certificate = submission_listening.load_certificate(ctx.settings)
    except server_tls.CertificateError as problem:
        raise duties.StartError(f"submission.tls_certificate: {problem}") from problem
    name = ctx.settings.delivery.hostname or await this_host.name()
    listeners = submission_listening.listeners(ctx, name=name, certificate=certificate, log=duty.log)
    started: list[duties.Started] = []
    try:
        for key, listener in listeners.items():
            started.append(await _listen(duty, listener, "submission", key=key, grace_seconds=chosen.grace_seconds))
    except duties.CannotListen:
        for listener in listeners.values():
            await listener.stop(grace_seconds=0)
        raise

    async def work() -> None:
        await asyncio.gather(*(each.work() for each in started))

    return duties.Started(work, {what: where for each in started for what, where in each.addresses.items()})


def _resting(duty: duties.Duty, event: str, *, reason: str) -> duties.Started:
    """A role that has nothing to do, and says so once."""

    async def rest() -> None:
        duty.log.info(event, reason=reason)
        await duty.stopping.wait()

    return duties.Started(rest)
