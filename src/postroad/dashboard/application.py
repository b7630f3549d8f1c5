"""The dashboard application: the routes of all pages, authentication and error pages."""

from collections.abc import Callable, Sequence
from typing import Final

from postroad.dashboard import (
    api_keys,
    audit_log,
    credentials,
    credits,
    deliveries,
    domains,
    error_pages,
    files,
    inbox,
    live,
    login,
    message,
    messages,
    overview,
    previews,
    profile,
    requests,
    suppressions,
    team,
    templates,
    webhook,
    welcome,
)
from postroad.dashboard import site as sites
from postroad.model import caller
from postroad.services import context
from postroad.services.auth import authentication
from postroad.telemetry import logs
from postroad.web import application, routing
from postroad.web import proxies as web_proxies

Routes = Sequence[routing.Route[context.Context]]
PAGES: Final[tuple[Callable[[sites.Site], Routes], ...]] = (
    login.routes,
    welcome.routes,
    overview.routes,
    live.routes,
    messages.routes,
    message.routes,
    previews.routes,
    domains.routes,
    credentials.routes,
    api_keys.routes,
    templates.routes,
    webhook.routes,
    deliveries.routes,
    suppressions.routes,
    credits.routes,
    team.routes,
    audit_log.routes,
    profile.routes,
)


def routes(site: sites.Site) -> Routes:
    """Every route of the dashboard; the inbox only in development."""
    received = inbox.routes(site, site.mail) if site.mail is not None else ()
    return (*(route for page in PAGES for route in page(site)), *received, *files.routes(site.files))


def build_application(
    ctx: context.Context, site: sites.Site, *, log: logs.Logger, proxies: web_proxies.Proxies | None = None
) -> application.Application[context.Context]:
    """The dashboard, ready to be served."""

    async def authenticate(asked: context.Context, headers: routing.Headers, *, client_address: str) -> caller.Caller:
        del client_address
        who, _ = await requests.authenticate(site, asked, headers)
        return who

    return application.Application(
        ctx,
        routes(site),
        authenticate=authenticate,
        require=authentication.require,
        bind_actor=context.acting_as,
        render_error=error_pages.error_renderer(site),
        proxies=proxies,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=log,
        counted=ctx.metrics,
    )
