"""`/login`, `/logout` and `/switch`; `/password/{token}`, where people choose a password."""

import contextlib
from typing import Final
from urllib import parse

import msgspec

from postroad import errors
from postroad.dashboard import cookies, forms, requests
from postroad.dashboard import site as sites
from postroad.services import context
from postroad.services.auth import (
    authentication,
    login,
    password_links,
    pending_logins,
    relying_party,
    second_factors,
    sessions,
)
from postroad.services.sso import flow, rules
from postroad.storage import logins
from postroad.web import routing

BODY_BYTES: Final = 16 * 1024
HOME: Final = "/"
SECOND_FACTOR: Final = "/login/second-factor"


class LoginForm(forms.Form, frozen=True, kw_only=True):
    """The credentials, and the page to open afterwards."""

    email: str
    password: str
    next: str | None = None


class LoginQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page to open after the login, and whether a form was sent with an expired session."""

    next: str | None = None
    session_expired: bool | None = None


class SwitchForm(forms.Form, frozen=True, kw_only=True):
    """The account to enter."""

    account_id: str


class PasswordForm(forms.Form, frozen=True, kw_only=True):
    """A new password."""

    password: str


def local_path(path: str | None) -> str:
    """A path on this site; anything that could lead to another site becomes the home page."""
    if path is None or not path.startswith("/") or path.startswith(("//", "/\\")) or not path.isprintable():
        return HOME
    return path if path.isascii() else HOME


def page(site: sites.Site, name: str, /, **values: object) -> routing.Response:
    """A page for somebody who is not logged in."""
    content = site.pages.render(name, {"problem": None, **values})
    return routing.Response(200, content, headers=site.headers, content_type=sites.HTML)


async def show_login(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """The login form; a user with a session goes on to the page."""
    next_path, expired = local_path(request.query.next), request.query.session_expired is True
    try:
        await requests.authenticate(site, ctx, request.headers)
    except errors.Unauthorized:
        return page(
            site,
            "login.html",
            next=next_path,
            session_expired=expired,
            has_inbox=site.mail is not None,
            relying_party=relying_party.of(ctx.settings),
        )
    return requests.redirect(request.headers, next_path)


async def log_in(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Start a session."""
    form: LoginForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    found = await login.check_password(acting(ctx, request), form.email, form.password)
    return await _proceed(site, ctx, request, found, next_path=local_path(form.next))


async def _proceed(
    site: sites.Site,
    ctx: context.Context,
    request: routing.Request,
    found: logins.Login,
    *,
    next_path: str,
    account_id: str | None = None,
    invitation: bytes | None = None,
) -> routing.Response:
    """Start a session after a right password, or ask for the second factor."""
    if (await second_factors.of_login(ctx, found.id)).exist:
        token = await pending_logins.begin(ctx, found, methods=authentication.PASSWORD, invitation=invitation)
        cookie = cookies.write(
            cookies.PENDING, token, is_secure=site.is_secure, seconds=pending_logins.LIFETIME_SECONDS
        )
        query = parse.urlencode({"next": next_path} | ({} if account_id is None else {"account_id": account_id}))
        return requests.redirect(request.headers, f"{SECOND_FACTOR}?{query}", headers=(cookie,))
    known = await login.finish(
        acting(ctx, request),
        found,
        methods=authentication.PASSWORD,
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
        provider = await flow.log_out_url(request.ctx, row.login_id) if rules.SSO in row.methods.split() else None
        await sessions.end(request.ctx, row.id)
    gone = cookies.remove(cookies.SESSION, is_secure=request.site.is_secure)
    if provider is not None:
        return requests.leave(request.site, request.http.headers, provider, headers=(gone,))
    return requests.redirect(request.http.headers, "/login", headers=(gone,))


async def switch(request: requests.PageRequest) -> routing.Response:
    """Continue the session in another account of the same person."""
    form: SwitchForm = request.form
    known = await login.switch(request.ctx, request.session, form.account_id)
    cookie = requests.session_cookie(request.ctx, request.site, known.session)
    return request.redirect(HOME, notice=f"You are now in the account {known.account.name}.", headers=(cookie,))


async def show_password(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """The form of a password link."""
    token = request.path["token"]
    user = await password_links.find_user(acting(ctx, request), token)
    return page(site, "password.html", token=token, email=user.email, is_new=user.joined_at is None)


async def choose_password(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Set the password and start a session, or ask for the second factor, which a new password does not replace."""
    form: PasswordForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    try:
        user = await password_links.redeem(acting(ctx, request), request.path["token"], password=form.password)
    except password_links.FactorNeeded as needed:
        return await _proceed(site, ctx, request, needed.login, next_path=HOME, invitation=needed.invitation)
    found = await second_factors.login_of(ctx, user.login_id or "")
    return await _proceed(site, ctx, request, found, next_path=HOME, account_id=user.account_id)


def acting(ctx: context.Context, request: routing.Request) -> context.Context:
    """The context of somebody who has not yet proved who they are."""
    return login.acting(ctx, client_address=request.client_address, request_id=request.id)


ROUTES: Final = (
    requests.public("GET", "/login", show_login, query=LoginQuery),
    requests.public("POST", "/login", log_in, form=LoginForm, body_limit=BODY_BYTES),
    requests.post("/logout", log_out, permission=requests.VIEW, looking=requests.Looking.UNCHANGED, is_enrolment=True),
    requests.post("/switch", switch, form=SwitchForm, permission=requests.VIEW, is_enrolment=True),
    requests.public("GET", "/password/{token}", show_password),
    requests.public("POST", "/password/{token}", choose_password, form=PasswordForm, body_limit=BODY_BYTES),
)
