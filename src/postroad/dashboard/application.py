"""The dashboard application: the routes of all pages, those that ask who you are once more, and the error pages."""

from collections.abc import Sequence
from typing import Final
from urllib import parse

from postroad import context, errors
from postroad.concurrency import fairness
from postroad.dashboard.framework import live, navigation, requests, static_files
from postroad.dashboard.framework import site as sites
from postroad.dashboard.mail import (
    approvals,
    find,
    glossary,
    inbox,
    message_list,
    message_page,
    overview,
    previews,
    received,
    suppressions,
    templates,
    unsubscribe,
    welcome,
)
from postroad.dashboard.operator import accounts, console, health, jobs, operators, providers, queue, sources
from postroad.dashboard.operator import audit_log as operator_audit_log
from postroad.dashboard.people import confirm, login, passkeys, profile, security, team
from postroad.dashboard.settings import audit_log, credentials, credits, domains, request_log, webhooks
from postroad.services.people import authentication, step_up
from postroad.telemetry import logs
from postroad.web import application, reverse_proxies, routing

# Error pages: the message, the request id and a link to go on, and the menu for who is logged in; without a
# session, a redirect to the login, or a page where there is none.
#
# Programs get the error object, and so do our scripts, which show it next to the form.

# Longer addresses are not worth returning to.
MAX_NEXT_CHARACTERS: Final = 1_000
_TITLES: Final = {
    400: "Invalid request",
    401: "Login failed",
    403: "Not allowed",
    404: "Not found",
    405: "Not found",
    409: "Conflict",
    413: "Request too large",
    429: "Too many requests",
    500: "Internal error",
    503: "Service unavailable",
}
_SAFE: Final = frozenset({"GET", "HEAD"})
# A form refused with one of these changed nothing and can be submitted again.
_RESUBMITTABLE: Final = frozenset({400, 401, 409, 413, 429})
# The page to return to, by the first segment of the path; the names are those of the menu.
SECTIONS: Final = {
    "audit-log": ("/audit-log", "Audit log"),
    "credentials": ("/credentials", "SMTP credentials"),
    "credits": ("/credits", "Credits"),
    "domains": ("/domains", "Domains"),
    "keys": ("/keys", "API keys"),
    "login": ("/login", "Log in"),
    "messages": ("/messages", "Messages"),
    "operator": ("/operator", "Operator console"),
    "profile": ("/profile", "Profile"),
    "received": ("/received", "Received"),
    "requests": ("/requests", "Requests"),
    "sso": ("/login", "Log in"),
    "suppressions": ("/suppressions", "Suppressions"),
    "team": ("/team", "Team"),
    "template": ("/templates", "Templates"),
    "templates": ("/templates", "Templates"),
    "webhooks": ("/webhooks", "Webhooks"),
    "welcome": ("/welcome", "Get started"),
}


def error_renderer(site: sites.Site, ctx: context.Context) -> application.RenderError:
    async def render(error: errors.PostroadError, refused: routing.RefusedRequest) -> routing.EncodedResponse | None:
        if not _wants_page(refused.headers):
            return None
        if there := _redirection(error, refused):
            answer = routing.Response(303, headers=(("Location", there), *site.headers))
            return routing.success(answer, request_id=refused.request_id)
        values = {
            "title": _TITLES.get(error.status, "Request failed"),
            "message": _message(error, refused),
            "section": _section(site, error, refused),
            "can_resubmit": refused.method == "POST"
            and (error.status in _RESUBMITTABLE or isinstance(error, errors.ConfirmationRequired)),
            "can_confirm": isinstance(error, errors.ConfirmationRequired),
            "code": error.code,
            "request_id": refused.request_id,
            "is_noted": refused.has_caller and _is_noted(error.status),
            "retry_after": error.retry_after,
        }
        # A service that is overloaded or stopping does no more work for its error.
        is_down = isinstance(error, errors.ServiceUnavailable)
        asked = None if is_down else await requests.of_refused(site, ctx, refused)
        if asked is None:
            answer = site.page(refused.headers, "error.html", values, status=error.status)
        else:
            is_operator = asked.sections is navigation.OPERATOR_SECTIONS
            layout = "operator/layout.html" if is_operator else "layout.html"
            answer = asked.page("error.html", status=error.status, layout=layout, **values)
        status, fields, body = routing.success(answer, request_id=refused.request_id)
        return status, [*fields, *routing.refusal_fields(error)], body

    return render


def _is_noted(status: int) -> bool:
    """Whether a refusal is in the requests log: what is not permitted or failed. Anything else is the person's own."""
    return status == errors.Forbidden.status or status >= errors.InternalError.status


def _redirection(error: errors.PostroadError, refused: routing.RefusedRequest) -> str:
    """Where to enrol, log in or confirm; empty where only a page can say what is wrong."""
    if isinstance(error, errors.SecondFactorMissing):
        return "/profile/security"
    if isinstance(error, errors.Unauthorized) and not refused.path.startswith(b"/login"):
        # The page to open after the login, or that a form was not processed.
        return f"/login{_next_query(refused) if refused.method in _SAFE else '?session_expired=true'}"
    if isinstance(error, errors.ConfirmationRequired) and refused.method in _SAFE:
        return f"{confirm.PATH}{_next_query(refused)}"
    return ""


def _section(site: sites.Site, error: errors.PostroadError, refused: routing.RefusedRequest) -> tuple[str, str] | None:
    """Where to go on; the console is not shown to those who may not open it, nor what is not there."""
    name = refused.path.decode("latin-1").removeprefix("/").partition("/")[0]
    is_closed = name == "operator" and isinstance(error, errors.Forbidden)
    return None if is_closed or (name == "credits" and not site.has_credits) else SECTIONS.get(name)


def _wants_page(headers: routing.Headers) -> bool:
    try:
        return headers.get(requests.SCRIPTED_FORM_HEADER) is None and b"text/html" in (headers.get(b"accept") or b"")
    except errors.InvalidRequest:
        return False


def _message(error: errors.PostroadError, refused: routing.RefusedRequest) -> str:
    """The message; routing errors are worded for API clients and get another one here."""
    if isinstance(error, errors.UnknownPath):
        return "There is no page at this address."
    if isinstance(error, errors.MethodNotAllowed) and refused.method == "GET":
        return "This address only accepts form submissions. Nothing was changed."
    return error.message


def _next_query(refused: routing.RefusedRequest) -> str:
    query = f"?{refused.query.decode('latin-1')}" if refused.query else ""
    path = login.local_path(refused.path.decode("latin-1") + query)
    return "" if path == login.HOME or len(path) > MAX_NEXT_CHARACTERS else f"?next={parse.quote(path, safe='/')}"


STEP_UP_ROUTES: Final = frozenset(
    {
        # Secrets.
        "POST /keys",
        "POST /credentials",
        "POST /webhooks",
        "POST /webhooks/{webhook}/secret",
        "POST /webhooks/{webhook}/settings",
        "POST /welcome/webhook",
        "POST /domains/{id}/rotate-key",
        "POST /profile/token",
        # Factors of the login.
        "POST /profile/passkeys",
        "POST /profile/passkeys/options",
        "POST /profile/passkeys/{id}/remove",
        # People and domains.
        "POST /team",
        "POST /team/sso",
        "POST /team/sso/remove",
        "POST /team/sso/test",
        "POST /team/{id}/disable",
        "POST /team/{id}/enable",
        "POST /team/{id}/link",
        "POST /team/{id}/recovery-link",
        "POST /team/{id}/remove",
        "POST /team/{id}/role",
        "POST /team/second-factor",
        "POST /domains/{id}/remove",
        # Data.
        "GET /approvals/{id}/request",
        "GET /audit-log/export",
        "GET /credits/ledger.csv",
        "GET /messages.csv",
        "GET /messages/{id}/attachments/{index}",
        "GET /messages/{id}/raw",
        "GET /received/{id}/attachments/{index}",
        "GET /received/{id}/raw",
        "GET /suppressions/export",
        # What operators do to others.
        "POST /messages/{id}/view-as",
        "POST /operator/accounts/{id}/close",
        "POST /operator/accounts/{id}/view-as",
        "POST /operator/accounts/{id}/recovery-link",
        "POST /operator/operators",
        "POST /operator/operators/{id}/remove",
    }
)


# Where mail costs credits.
CREDIT_ROUTES: Final = (*credits.ROUTES, *accounts.CREDIT_ROUTES)
# Those of the operator console.
OPERATOR_ROUTES: Final = (
    *console.LIVE_ROUTES,
    *health.ROUTES,
    *queue.ROUTES,
    *queue.CHANGE_ROUTES,
    *providers.ROUTES,
    *sources.ROUTES,
    *jobs.CONSISTENCY_ROUTES,
    *jobs.ROUTES,
    *accounts.ROUTES,
    *accounts.ACTION_ROUTES,
    *accounts.VIEW_ROUTES,
    *operators.ROUTES,
    *operator_audit_log.ROUTES,
)
# The routes of all other pages. The inbox of the simulator has a state of its own.
ROUTES: Final = (
    *live.ROUTES,
    *login.ROUTES,
    *login.SECOND_FACTOR_ROUTES,
    *login.SSO_ROUTES,
    *profile.NOTICE_ROUTES,
    *welcome.ROUTES,
    *overview.ROUTES,
    *overview.FAILURE_ROUTES,
    *find.ROUTES,
    *glossary.ROUTES,
    *message_list.ROUTES,
    *message_page.ROUTES,
    *message_list.VIEW_ROUTES,
    *message_page.ACTION_ROUTES,
    *message_page.CODE_ROUTES,
    *suppressions.RECIPIENT_ROUTES,
    *message_list.BULK_ROUTES,
    *message_list.TAIL_ROUTES,
    *previews.ROUTES,
    *received.ROUTES,
    *domains.ROUTES,
    *credentials.ROUTES,
    *credentials.KEY_ROUTES,
    *templates.ROUTES,
    *templates.VERSION_ROUTES,
    *webhooks.ROUTES,
    *suppressions.ROUTES,
    *unsubscribe.ROUTES,
    *approvals.ROUTES,
    *team.ROUTES,
    *team.SSO_ROUTES,
    *audit_log.ROUTES,
    *request_log.ROUTES,
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
    pages = (*ROUTES, *received, *paid)
    return (*(page(site) for page in pages), *static_files.routes(site.files))


def recipient_routes(site: sites.Site) -> tuple[routing.Route[context.Context], ...]:
    """What the recipients of mail need, where the dashboard is off."""
    return (*(page(site) for page in unsubscribe.ROUTES), *static_files.routes(site.files))


def build_application(
    ctx: context.Context,
    site: sites.Site,
    *,
    served: Sequence[routing.Route[context.Context]] | None = None,
    log: logs.Logger,
    require: application.Require = authentication.require,
    proxies: reverse_proxies.Proxies | None = None,
    delays: fairness.ResponseDelays | None = None,
) -> application.Application[context.Context]:
    return application.Application(
        ctx,
        served or routes(site),
        authenticate=requests.authenticator(site),
        require=require,
        bind_actor=context.acting_as,
        confirmation=application.Confirmation(STEP_UP_ROUTES, step_up.refuse_unconfirmed),
        render_error=error_renderer(site, ctx),
        proxies=proxies,
        clock=ctx.clock,
        entropy=ctx.entropy,
        log=log,
        counted=ctx.metrics,
        threads=ctx.threads,
        delays=delays,
        note=lambda request: ctx.request_log.note(request) if _is_noted(request.status) else None,
    )
