"""The roles with listeners: HTTP, SMTP submission, inbound reports and metrics.

Each listens on the addresses in its settings until shutdown, then finishes requests in progress.
"""

import asyncio
import types
from collections.abc import Mapping, Sequence
from typing import Final

from postroad import build_version, config, extensions
from postroad import context as services_context
from postroad.api import acme_challenges, authentication, documentation, extension_api, monitoring
from postroad.api import routes as api_routes
from postroad.api.operator import routes as operator_routes
from postroad.api.v1 import inbox
from postroad.concurrency import fairness
from postroad.dashboard import application as dashboard
from postroad.dashboard.framework import site as sites
from postroad.inbound import session as inbound_session
from postroad.model.delivery import throttle
from postroad.network import hostname
from postroad.network import listener as network_listener
from postroad.network.http import http_messages, http_server
from postroad.network.smtp import content_spool, smtp_server
from postroad.network.tls import server_tls
from postroad.protocol.text import http_values
from postroad.roles import role
from postroad.services.operations import certificates, operator_jobs, operator_state
from postroad.services.people import authentication as people_authentication
from postroad.services.people import step_up
from postroad.storage.engine import open_store
from postroad.submission import listeners as submission_listeners
from postroad.web import application, path_switch, request_reader, reverse_proxies

# Enough for a few scrapers and health checks.
METRICS_CONNECTIONS: Final = 64
# A page of the dashboard makes many requests at once, and then none.
API_BURST_SECONDS: Final = 2

# The name of the listener at each setting, in log lines.
LISTENERS: Final = {
    "http.listen": "http",
    "http.redirect_listen": "http_redirect",
    "metrics.listen": "metrics",
    "inbound.listen": "inbound",
    "submission.listen": "submission",
    "submission.tls_listen": "submission_tls",
}


async def start_api(role_context: role.RoleContext) -> role.Started:
    """Start the HTTP listener: the API, and the dashboard on the same address."""
    settings, ctx = role_context.context.settings, role_context.context
    received = inbox.routes(role_context.mail) if role_context.mail is not None else ()
    described = (*api_routes.ROUTES, *received, *monitoring.health_routes(is_draining=role_context.is_draining))
    trusted = settings.http.trusted_proxies
    proxies = reverse_proxies.Proxies(trusted) if trusted else None
    policy = throttle.RateLimit(rate=settings.limits.api_rate, burst=API_BURST_SECONDS * settings.limits.api_rate)
    rate = people_authentication.ManagementRate(policy, clock=ctx.clock)
    mount = extension_api.Mount(lambda: app.serve_part, rate.require, config.public_url(settings))
    mounted = [route for build in extensions.parts("routes", types.FunctionType) for route in build(mount)]
    operating = operator_state.OperatorState(operator_jobs.Jobs(role_context.log))
    routes = (
        *described,
        *operator_routes.build(operating),
        *documentation.routes(described, version=build_version.current()),
        *documentation.markdown_routes(),
        *mounted,
        *monitoring.metrics_routes(role_context.render_metrics, is_behind_proxy=config.is_behind_proxy(settings)),
        *(acme_challenges.routes() if settings.acme.names else ()),
    )
    large_body_slots = request_reader.LargeBodySlots(frontends=role_context.frontend_processes)
    delays = fairness.ResponseDelays()
    app = application.Application(
        ctx,
        routes,
        authenticate=authentication.authenticate,
        require=rate.require,
        bind_actor=services_context.acting_as,
        confirmation=application.Confirmation(authentication.STEP_UP_ROUTES, step_up.refuse_unconfirmed),
        proxies=proxies,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=role_context.log,
        counted=ctx.metrics,
        large_body_slots=large_body_slots,
        threads=ctx.threads,
        delays=delays,
        note=ctx.request_log.note,
    )
    site = sites.build(
        settings, mail=role_context.mail, is_stopping=role_context.stopping.is_set, operator_state=operating
    )
    shown = dashboard.routes(site) if settings.dashboard.enabled else dashboard.recipient_routes(site)
    pages: http_server.Application = dashboard.build_application(
        ctx, site, served=shown, require=rate.require, proxies=proxies, log=role_context.log, delays=delays
    )
    if not settings.dashboard.enabled:
        pages = path_switch.PathSwitch(pages, app, paths=[route.path for route in shown])
    apis = extensions.parts("apis", extension_api.HttpApi)
    others = {
        api.prefix: extension_api.build_application(
            ctx,
            api,
            require=rate.require,
            proxies=proxies,
            log=role_context.log,
            large_body_slots=large_body_slots,
            delays=delays,
        )
        for api in apis
    }
    marks = {name: api.prefix for api in apis for name in api.own_headers}
    # Our own API comes first: no extension has one of its paths, and a send should not look at the header fields twice.
    other_paths = path_switch.PathPrefixes(others, pages, headers=marks) if apis else pages
    served = path_switch.PathSwitch(app, other_paths, paths=[route.path for route in routes])
    limits = http_messages.Limits(
        connections=settings.http.connections, connections_per_address=settings.http.connections_per_address
    )
    certificate = _certificate(role_context, "http")
    listeners = {
        "listen": http_server.HttpListener(
            served,
            refuse=app.refuse,
            limits=limits,
            is_exempt=proxies.is_trusted if proxies is not None else None,
            tls=(lambda: certificate.context) if certificate else None,
            challenges=role_context.acme.challenges if role_context.acme else None,
            refresh=certificates.refresher(certificate, listener="http", log=role_context.log),
        )
    }
    if settings.http.redirect_listen:
        fields = {http_values.AUTHORIZATION, *(name for api in apis for name in api.key_headers)}
        redirect = path_switch.HttpsRedirect(config.public_url(settings), refuse=app.refuse, credentials=fields)
        challenged = path_switch.PathSwitch(app, redirect, paths=[acme_challenges.PATH])
        listeners["redirect_listen"] = http_server.HttpListener(challenged, refuse=app.refuse, limits=limits)
    started = await _listen_all(role_context, listeners, "http")

    async def work() -> None:
        try:
            await started.work()
        finally:
            await operating.close()

    return role.Started(work, started.addresses)


async def start_metrics(role_context: role.RoleContext) -> role.Started:
    """Start the listener for metrics and health checks; every process may have one, so it is not a role."""
    ctx = role_context.context
    app = application.Application(
        ctx,
        (
            *monitoring.metrics_routes(role_context.render_metrics, is_behind_proxy=False),
            *monitoring.health_routes(is_draining=role_context.is_draining),
        ),
        authenticate=authentication.authenticate,
        require=people_authentication.require,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=role_context.log,
        counted=ctx.metrics,
    )
    listener = http_server.HttpListener(
        app, refuse=app.refuse, limits=http_messages.Limits(connections=METRICS_CONNECTIONS)
    )
    return await _listen(role_context, listener, "metrics")


def _certificate(role_context: role.RoleContext, listener: str) -> server_tls.ServerCertificate | None:
    """The certificate of a listener, if it has one."""
    settings = role_context.context.settings
    if listener not in config.tls_sections(settings):
        return None
    if settings.acme.names:
        return role_context.acme
    try:
        return certificates.load(settings)
    except config.ConfigError as problem:
        raise role.StartError(str(problem)) from problem


async def _listen_all(
    role_context: role.RoleContext,
    listeners: Mapping[str, http_server.HttpListener | smtp_server.SmtpListener],
    section: str,
) -> role.Started:
    """Listen on several addresses of a section, by the keys of their settings."""
    started: list[role.Started] = []
    try:
        for key, listener in listeners.items():
            started.append(await _listen(role_context, listener, section, key=key))
    except role.CannotListen:
        for listener in listeners.values():
            await listener.stop(grace_seconds=0)
        raise

    async def work() -> None:
        await asyncio.gather(*(each.work() for each in started))

    return role.Started(work, {what: where for each in started for what, where in each.addresses.items()})


async def _listen(
    role_context: role.RoleContext,
    listener: http_server.HttpListener | smtp_server.SmtpListener,
    section: str,
    *,
    key: str = "listen",
) -> role.Started:
    """Listen on the address in a setting until shutdown."""
    setting = f"{section}.{key}"
    bound = role_context.bound.get(setting)
    if bound is None:
        (bound,) = await asyncio.to_thread(bind, role_context.context.settings, setting)
    await listener.serve(bound)

    async def drain() -> None:
        await role_context.draining.wait()
        listener.drain()

    async def work() -> None:
        draining = asyncio.create_task(drain())
        try:
            await role_context.stopping.wait()
        finally:
            draining.cancel()
            await listener.stop(grace_seconds=role_context.context.settings.shutdown.grace_seconds)

    return role.Started(work, {LISTENERS[setting]: config.Endpoint(*listener.address)})


def is_set(settings: config.Settings, setting: str) -> bool:
    section, _, key = setting.partition(".")
    return bool(getattr(getattr(settings, section), key))


def _endpoint(settings: config.Settings, setting: str) -> config.Endpoint:
    section, _, key = setting.partition(".")
    return config.endpoint(getattr(getattr(settings, section), key), name=setting)


def bind(settings: config.Settings, setting: str, *, processes: int = 1) -> Sequence[network_listener.BoundSockets]:
    """Bind the address in a setting, once for each process."""
    endpoint = _endpoint(settings, setting)
    try:
        return network_listener.bind(endpoint.host, endpoint.port, processes=processes)
    except OSError as problem:
        raise role.cannot_listen(endpoint, problem, setting=setting) from problem


def find_inherited(
    settings: config.Settings, sockets: network_listener.BoundSockets
) -> dict[str, network_listener.BoundSockets]:
    """The sockets that the service manager has bound, by setting. Raises StartError for an address of no setting."""
    found: dict[str, network_listener.BoundSockets] = {}
    unknown = list(sockets)
    for setting in LISTENERS:
        if unknown and is_set(settings, setting):
            wanted = {where[:2] for _, where in network_listener.addresses(*_endpoint(settings, setting))}
            own = [socket for socket in unknown if socket.getsockname()[:2] in wanted]
            found |= {setting: own} if own else {}
            unknown = [socket for socket in unknown if socket not in own]
    if unknown:
        where = config.Endpoint(*network_listener.address(unknown))
        raise role.StartError(
            f"the service manager listens on {where}, which is no listen address of this service; change the settings "
            "or its socket unit"
        )
    return found


async def start_inbound(role_context: role.RoleContext) -> role.Started:
    """Start the listener for bounces, complaints and mail to routes; idle if it has no listen address."""
    ctx, settings = role_context.context, role_context.context.settings
    if not settings.inbound.listen:
        return _idle_role(role_context, "inbound_disabled", reason="inbound.listen is not set")
    # In development nobody writes to the operator.
    if not settings.operator.is_reachable and role_context.mail is None:
        advice = "mail to postmaster and abuse is deferred; set operator.email and operator.from to receive it"
        role_context.log.warning("operator_not_configured", detail=advice)
    listener = inbound_session.listener(
        ctx,
        name=settings.delivery.hostname or await hostname.name(),
        log=role_context.log,
        certificate=_certificate(role_context, "inbound"),
        spool=_open_spool(role_context),
    )
    return await _listen(role_context, listener, "inbound")


async def start_submission(role_context: role.RoleContext) -> role.Started:
    """Start the SMTP submission listeners; idle if neither has a listen address."""
    ctx, chosen = role_context.context, role_context.context.settings.submission
    if not (chosen.listen or chosen.tls_listen):
        return _idle_role(
            role_context, "submission_disabled", reason="submission.listen and submission.tls_listen are not set"
        )
    listeners = submission_listeners.listeners(
        ctx,
        name=ctx.settings.delivery.hostname or await hostname.name(),
        certificate=_certificate(role_context, "submission"),
        log=role_context.log,
        spool=_open_spool(role_context),
    )
    return await _listen_all(role_context, listeners, "submission")


def _open_spool(role_context: role.RoleContext) -> content_spool.ContentSpool:
    settings = role_context.context.settings

    def failed(problem: OSError) -> None:
        role_context.log.warning("spool_failed", folder=spool.folder, detail=problem.strerror)

    folder = open_store.sqlite_folder(settings.database.url)
    spool = content_spool.ContentSpool(folder, megabytes=settings.limits.spool_megabytes, failed=failed)
    return spool


def _idle_role(role_context: role.RoleContext, event: str, *, reason: str) -> role.Started:
    """A disabled role, which logs the reason once."""

    async def idle() -> None:
        role_context.log.info(event, reason=reason)
        await role_context.stopping.wait()

    return role.Started(idle)
