"""`/login` with its second step and single sign-on, `/logout`, `/switch`, `/password/{token}`."""

import contextlib
from typing import Final
from urllib import parse

import msgspec

from postroad import context, errors
from postroad.dashboard.framework import cookies, forms, requests
from postroad.dashboard.framework import site as sites
from postroad.model.units import identifiers
from postroad.services.people import (
    logins,
    passkeys,
    password_links,
    second_factors,
    sessions,
    sso_connections,
    sso_flow,
)
from postroad.storage.people import users
from postroad.web import routing

BODY_BYTES: Final = 16 * 1024
HOME: Final = "/"
SECOND_FACTOR: Final = "/login/second-factor"


class LoginForm(forms.Form, frozen=True, kw_only=True):
    email: str
    password: str
    next: str | None = None


class LoginQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page to open after the login, and whether a form was sent with an expired session."""

    next: str | None = None
    session_expired: bool | None = None


class SwitchForm(forms.Form, frozen=True, kw_only=True):
    account_id: str


class PasswordForm(forms.Form, frozen=True, kw_only=True):
    password: str


def local_path(path: str | None) -> str:
    """A path on this site; anything that could lead to another site becomes the home page."""
    if path is None or not path.startswith("/") or path.startswith(("//", "/\\")) or not path.isprintable():
        return HOME
    return path if path.isascii() else HOME


async def show_login(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """The login form; a user with a session goes on to the page."""
    next_path = local_path(request.query.next)
    try:
        await requests.authenticate(site, ctx, request.headers)
    except errors.Unauthorized:
        values = {
            "next": next_path,
            "session_expired": request.query.session_expired is True,
            "has_inbox": site.mail is not None,
            "relying_party": passkeys.relying_party(ctx.settings),
        }
        return site.page(request.headers, "login.html", values)
    return requests.redirect(request.headers, next_path)


async def log_in(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    form: LoginForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    found = await logins.check_password(acting_caller(ctx, request), form.email, form.password)
    return await _proceed(site, ctx, request, found, next_path=local_path(form.next))


async def _proceed(
    site: sites.Site,
    ctx: context.Context,
    request: routing.Request,
    found: users.Login,
    *,
    next_path: str,
    account_id: str | None = None,
    invitation: bytes | None = None,
) -> routing.Response:
    """Start a session after a right password, or ask for the second factor."""
    if (await second_factors.of_login(ctx, found.id)).exist:
        token = await second_factors.begin_pending(ctx, found, methods=logins.PASSWORD, invitation=invitation)
        cookie = cookies.write(cookies.PENDING, token, is_secure=site.is_secure, seconds=second_factors.PENDING_SECONDS)
        query = parse.urlencode({"next": next_path} | ({} if account_id is None else {"account_id": account_id}))
        return requests.redirect(request.headers, f"{SECOND_FACTOR}?{query}", headers=(cookie,))
    known = await logins.finish(
        acting_caller(ctx, request),
        found,
        methods=logins.PASSWORD,
        device=request.device,
        account_id=account_id,
    )
    cookie = requests.session_cookie(ctx, site, known.session)
    return requests.redirect(request.headers, next_path, headers=(cookie,))


def pending_token(site: sites.Site, request: routing.Request) -> str | None:
    """The token of a login that waits for its second factor."""
    return cookies.read(request.headers, cookies.PENDING, is_secure=site.is_secure)


async def log_out(request: requests.PageRequest) -> routing.Response:
    """End the session, also at the provider of single sign-on. Even without the store, this browser loses it."""
    row, provider = request.session.row, None
    with contextlib.suppress(errors.NotFound, errors.ServiceUnavailable, errors.TemporaryFailure):
        provider = (
            await sso_flow.log_out_url(request.ctx, row.login_id)
            if sso_connections.SSO in row.methods.split()
            else None
        )
        await sessions.end(request.ctx, row.id)
    gone = cookies.remove(cookies.SESSION, is_secure=request.site.is_secure)
    if provider is not None:
        return requests.leave(request.site, request.http.headers, provider, headers=(gone,))
    return requests.redirect(request.http.headers, "/login", headers=(gone,))


async def switch(request: requests.PageRequest) -> routing.Response:
    form: SwitchForm = request.form
    known = await logins.switch(request.ctx, request.session, form.account_id)
    cookie = requests.session_cookie(request.ctx, request.site, known.session)
    return request.redirect(HOME, notice=f"You are now in the account {known.account.name}.", headers=(cookie,))


async def show_password(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    token = request.path["token"]
    user = await password_links.find_user(acting_caller(ctx, request), token)
    values = {"token": token, "email": user.email, "is_new": user.joined_at is None}
    return site.page(request.headers, "password.html", values)


async def choose_password(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Set the password and start a session, or ask for the second factor, which a new password does not replace."""
    form: PasswordForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    try:
        user = await password_links.redeem(acting_caller(ctx, request), request.path["token"], password=form.password)
    except password_links.FactorNeeded as needed:
        return await _proceed(site, ctx, request, needed.login, next_path=HOME, invitation=needed.invitation)
    found = await second_factors.login_of(ctx, user.login_id or "")
    return await _proceed(site, ctx, request, found, next_path=HOME, account_id=user.account_id)


def acting_caller(ctx: context.Context, request: routing.Request) -> context.Context:
    """The context of somebody who has not yet proved who they are."""
    return logins.acting(ctx, client_address=request.client_address, request_id=request.id)


ROUTES: Final = (
    requests.public("GET", "/login", show_login, query=LoginQuery),
    requests.public("POST", "/login", log_in, form=LoginForm, body_limit=BODY_BYTES),
    requests.post("/logout", log_out, permission=requests.VIEW, viewing=requests.Viewing.UNCHANGED, is_enrolment=True),
    requests.post("/switch", switch, form=SwitchForm, permission=requests.VIEW, is_enrolment=True),
    requests.public("GET", "/password/{token}", show_password),
    requests.public("POST", "/password/{token}", choose_password, form=PasswordForm, body_limit=BODY_BYTES),
)


class SecondStep(forms.Form, frozen=True, kw_only=True):
    """The page to open afterwards, in an account or in the one that was used last."""

    next: str | None = None
    account_id: str | None = None


class CodeForm(SecondStep, frozen=True, kw_only=True):
    code: str


class SecondStepQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    next: str | None = None
    account_id: str | None = None


async def show_second_factor(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """The form for the code; without a right password, that of the login."""
    query: SecondStepQuery = request.query
    try:
        pending = await second_factors.find_pending(ctx, pending_token(site, request))
    except errors.Unauthorized:
        return requests.redirect(request.headers, "/login")
    factors = await second_factors.of_login(ctx, pending.login.id)
    next_path = local_path(query.next)
    values = {
        "next": next_path,
        "account_id": query.account_id,
        "factors": factors,
        "relying_party": passkeys.relying_party(ctx.settings),
    }
    return site.page(request.headers, "second_factor.html", values)


async def check_second_factor(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    form: CodeForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    pending = await second_factors.find_pending(ctx, pending_token(site, request))
    method = await second_factors.check_code(acting_caller(ctx, request), pending.login, form.code)
    return await complete_login(site, ctx, request, method=method)


async def complete_login(
    site: sites.Site, ctx: context.Context, request: routing.Request, *, method: str
) -> routing.Response:
    """Start the session of a login that has proved its second factor by `method`."""
    form: SecondStep = request.body
    acting, account_id = acting_caller(ctx, request), form.account_id
    pending = await second_factors.consume_pending(ctx, pending_token(site, request))
    if pending.invitation is not None:
        account_id = (await password_links.join(acting, pending.invitation, pending.login)).account_id
    known = await logins.finish(
        acting,
        pending.login,
        methods=f"{pending.methods} {method}",
        device=request.device,
        account_id=account_id,
    )
    fields = (
        requests.session_cookie(ctx, site, known.session),
        cookies.remove(cookies.PENDING, is_secure=site.is_secure),
    )
    return requests.redirect(request.headers, local_path(form.next), headers=fields)


SECOND_FACTOR_ROUTES: Final = (
    requests.public("GET", SECOND_FACTOR, show_second_factor, query=SecondStepQuery),
    requests.public("POST", SECOND_FACTOR, check_second_factor, form=CodeForm, body_limit=BODY_BYTES),
)


# `/login/sso` and `/sso/{connection}/callback`: from an email to the provider of single sign-on, and back.
#
# The callback is a GET that writes, because a provider sends the browser there: it does so once, for the browser that
# has begun, with a code that is spent (docs/decisions/0027-single-sign-on.md).


class EmailForm(forms.Form, frozen=True, kw_only=True):
    """Whose provider to use; without an email, that of the installation."""

    email: str | None = None
    next: str | None = None


class NextQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    next: str | None = None


class AnswerQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider adds to the redirect URI; the rest is ignored (RFC 6749 section 4.1.2)."""

    code: str | None = None
    state: str | None = None
    iss: str | None = None
    error: str | None = None


async def show_sso(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    values = {"next": local_path(request.query.next), "has_installation": bool(ctx.settings.sso.issuer)}
    return site.page(request.headers, "sso.html", values)


async def begin_sso(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    form: EmailForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    account_id = sso_flow.INSTALLATION if form.email is None else await sso_flow.connection_for(ctx, form.email)
    begun = await sso_flow.begin(ctx, account_id, next_path=local_path(form.next), login_hint=form.email or "")
    return requests.leave(site, request.headers, begun.url, headers=(sso_cookie(site, begun),))


async def finish_sso(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Log in whom the provider vouches for, or show what a test has found."""
    acting = acting_caller(ctx, request)
    answer = {name: value for name, value in msgspec.structs.asdict(request.query).items() if value is not None}
    given = cookies.read(request.headers, cookies.SSO, is_secure=site.is_secure)
    completed = await sso_flow.complete(acting, _account_id(request.path["connection"]), cookie=given, answer=answer)
    over = cookies.remove(cookies.SSO, is_secure=site.is_secure)
    if completed.attempt.is_test:
        return _tested(site, request, completed, over)
    found = await sso_flow.enter(acting, completed)
    account_id = completed.attempt.account_id or None
    begun = await logins.finish(
        acting, found, methods=sso_connections.SSO, device=request.device, account_id=account_id
    )
    session = requests.session_cookie(ctx, site, begun.session)
    return requests.redirect(request.headers, completed.attempt.next, headers=(session, over))


def sso_cookie(site: sites.Site, begun: sso_flow.Begun) -> tuple[str, str]:
    return cookies.write(cookies.SSO, begun.cookie, is_secure=site.is_secure, seconds=sso_flow.ATTEMPT_SECONDS)


def _account_id(connection: str) -> str:
    if connection == sso_connections.INSTALLATION_NAME:
        return sso_flow.INSTALLATION
    if not identifiers.is_identifier(connection, identifiers.ACCOUNT):
        raise errors.NotFound("there is no such single sign-on")
    return connection


def _tested(
    site: sites.Site, request: routing.Request, completed: sso_flow.Completed, over: tuple[str, str]
) -> routing.Response:
    plan, person = completed.plan, completed.person
    problem = None
    try:
        sso_flow.mailbox(plan, person)
    except errors.Forbidden as refusal:
        problem = refusal.message
    values = {"person": person, "problem": problem, "role": sso_flow.role_of(plan, person)}
    return site.page(request.headers, "sso_test.html", values, headers=(over,))


SSO_ROUTES: Final = (
    requests.public("GET", "/login/sso", show_sso, query=NextQuery),
    requests.public("POST", "/login/sso", begin_sso, form=EmailForm, body_limit=BODY_BYTES),
    requests.public("GET", "/sso/{connection}/callback", finish_sso, query=AnswerQuery, ignores_bad_query=True),
)
