"""`/login/sso` and `/sso/{connection}/callback`: from an email to the provider of single sign-on, and back.

The callback is a GET that writes, because a provider sends the browser there: it does so once, for the browser that
has begun, with a code that is spent (docs/decisions/0027-single-sign-on.md).
"""

from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import cookies, forms, login, requests
from postroad.dashboard import site as sites
from postroad.model import identifiers
from postroad.services import context
from postroad.services.auth import login as auth_login
from postroad.services.sso import connections, flow, people, rules
from postroad.web import routing

BODY_BYTES: Final = 16 * 1024


class EmailForm(forms.Form, frozen=True, kw_only=True):
    """Whose provider to use; without an email, that of the installation."""

    email: str | None = None
    next: str | None = None


class NextQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page to open after the login."""

    next: str | None = None


class AnswerQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider adds to the redirect URI; the rest is ignored (RFC 6749 section 4.1.2)."""

    code: str | None = None
    state: str | None = None
    iss: str | None = None
    error: str | None = None


async def show(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """The form for the email."""
    has_installation = bool(ctx.settings.sso.issuer)
    next_path = login.local_path(request.query.next)
    return login.page(site, "sso.html", next=next_path, has_installation=has_installation)


async def begin(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Send the browser to the provider."""
    form: EmailForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    account_id = flow.INSTALLATION if form.email is None else await flow.connection_for(ctx, form.email)
    begun = await flow.begin(ctx, account_id, next_path=login.local_path(form.next), login_hint=form.email or "")
    return requests.leave(site, request.headers, begun.url, headers=(cookie(site, begun),))


async def finish(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Log in whom the provider vouches for, or show what a test has found."""
    acting = auth_login.acting(ctx, client_address=request.client_address, request_id=request.id)
    answer = {name: value for name, value in msgspec.structs.asdict(request.query).items() if value is not None}
    given = cookies.read(request.headers, cookies.SSO, is_secure=site.is_secure)
    completed = await flow.complete(acting, _account_id(request.path["connection"]), cookie=given, answer=answer)
    over = cookies.remove(cookies.SSO, is_secure=site.is_secure)
    if completed.attempt.is_test:
        return _tested(site, completed, over)
    found = await flow.enter(acting, completed)
    account_id = completed.attempt.account_id or None
    begun = await auth_login.finish(acting, found, methods=rules.SSO, device=request.device, account_id=account_id)
    session = requests.session_cookie(ctx, site, begun.session)
    return requests.redirect(request.headers, completed.attempt.next, headers=(session, over))


def cookie(site: sites.Site, begun: flow.Begun) -> tuple[str, str]:
    """The header field that sets the cookie of an attempt."""
    return cookies.write(cookies.SSO, begun.cookie, is_secure=site.is_secure, seconds=flow.ATTEMPT_SECONDS)


def _account_id(connection: str) -> str:
    if connection == connections.INSTALLATION_NAME:
        return flow.INSTALLATION
    if not identifiers.is_identifier(connection, identifiers.ACCOUNT):
        raise errors.NotFound("there is no such single sign-on")
    return connection


def _tested(site: sites.Site, completed: flow.Completed, over: tuple[str, str]) -> routing.Response:
    """What a test has found. Nothing was changed."""
    plan, person = completed.plan, completed.person
    problem = None
    try:
        people.mailbox(plan, person)
    except errors.Forbidden as refusal:
        problem = refusal.message
    values = {"person": person, "problem": problem, "role": people.role_of(plan, person)}
    content = site.pages.render("sso_test.html", values)
    return routing.Response(200, content, headers=(*site.headers, over), content_type=sites.HTML)


ROUTES: Final = (
    requests.public("GET", "/login/sso", show, query=NextQuery),
    requests.public("POST", "/login/sso", begin, form=EmailForm, body_limit=BODY_BYTES),
    requests.public("GET", "/sso/{connection}/callback", finish, query=AnswerQuery, ignores_bad_query=True),
)
