"""The dashboard application: the routes of all pages, authentication and error pages."""

from typing import Final

from postroad.concurrency import response_delays
from postroad.dashboard import (
    api_keys,
    approvals,
    audit_log,
    bulk_actions,
    confirm,
    credentials,
    credits,
    dangerous_pages,
    deliveries,
    domains,
    error_pages,
    failures,
    files,
    find,
    inbox,
    live,
    login,
    message,
    message_actions,
    message_code,
    messages,
    notices,
    overview,
    passkeys,
    previews,
    profile,
    recipient,
    requests,
    saved_views,
    second_factor,
    security,
    sso,
    suppressions,
    tail,
    team,
    team_sso,
    template_versions,
    templates,
    webhook,
    welcome,
)
from postroad.dashboard import site as sites
from postroad.dashboard.operator import (
    account_actions,
    accounts,
    consistency_checks,
    health,
    jobs,
    looks,
    operators,
    providers,
    queue,
    queue_changes,
    sources,
)
from postroad.dashboard.operator import audit_log as operator_audit_log
from postroad.dashboard.operator import live as operator_live
from postroad.model import caller
from postroad.services import context
from postroad.services.auth import authentication, step_up
from postroad.telemetry import logs
from postroad.web import application, routing
from postroad.web import proxies as web_proxies

# Where mail costs credits.
CREDIT_ROUTES: Final = (*credits.ROUTES, *account_actions.CREDIT_ROUTES)
# Those of the operator console.
OPERATOR_ROUTES: Final = (
    *operator_live.ROUTES,
    *health.ROUTES,
    *queue.ROUTES,
    *queue_changes.ROUTES,
    *providers.ROUTES,
    *sources.ROUTES,
    *consistency_checks.ROUTES,
    *jobs.ROUTES,
    *accounts.ROUTES,
    *account_actions.ROUTES,
    *looks.ROUTES,
    *operators.ROUTES,
    *operator_audit_log.ROUTES,
)
# The routes of all other pages. The live updates and the inbox of the simulator have a state of their own.
ROUTES: Final = (
    *login.ROUTES,
    *second_factor.ROUTES,
    *sso.ROUTES,
    *notices.ROUTES,
    *welcome.ROUTES,
    *overview.ROUTES,
    *failures.ROUTES,
    *find.ROUTES,
    *messages.ROUTES,
    *message.ROUTES,
    *saved_views.ROUTES,
    *message_actions.ROUTES,
    *message_code.ROUTES,
    *recipient.ROUTES,
    *bulk_actions.ROUTES,
    *tail.ROUTES,
    *previews.ROUTES,
    *domains.ROUTES,
    *credentials.ROUTES,
    *api_keys.ROUTES,
    *templates.ROUTES,
    *template_versions.ROUTES,
    *webhook.ROUTES,
    *deliveries.ROUTES,
    *suppressions.ROUTES,
    *approvals.ROUTES,
    *team.ROUTES,
    *team_sso.ROUTES,
    *audit_log.ROUTES,
    *profile.ROUTES,
    *security.ROUTES,
    *passkeys.ROUTES,
    *confirm.ROUTES,
    *OPERATOR_ROUTES,
)


def routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """Every route of the dashboard; the inbox only in development, credits only where mail costs them."""
    received = inbox.routes(site.mail) if site.mail is not None else ()
    paid = CREDIT_ROUTES if site.has_credits else ()
    pages = (*ROUTES, *live.routes(), *received, *paid)
    return (*(page(site) for page in pages), *files.routes(site.files))


def build_application(
    ctx: context.Context,
    site: sites.Site,
    *,
    log: logs.Logger,
    require: application.Require = authentication.require,
    proxies: web_proxies.Proxies | None = None,
    delays: response_delays.ResponseDelays | None = None,
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
        require=require,
        bind_actor=context.acting_as,
        confirmation=application.Confirmation(dangerous_pages.PAGES, step_up.refuse_unconfirmed),
        render_error=error_pages.error_renderer(site),
        proxies=proxies,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=log,
        counted=ctx.metrics,
        threads=ctx.threads,
        delays=delays,
    )
