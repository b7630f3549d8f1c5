"""`/login`, `/logout` and `/switch`; `/password/{token}`, where people choose a password."""

import contextlib
from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import cookies, forms, requests
from postroad.dashboard import site as sites
from postroad.services import context
from postroad.services.auth import authentication, login, password_links, sessions
from postroad.storage import sessions as stored_sessions
from postroad.web import routing

BODY_BYTES: Final = 16 * 1024
HOME: Final = "/"


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


def _page(site: sites.Site, name: str, **values: object) -> routing.Response:
    content = site.pages.render(name, {"problem": None, **values})
    return routing.Response(200, content, headers=site.headers, content_type=sites.HTML)


async def show_login(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """The login form; a user with a session goes on to the page."""
    next_path, expired = local_path(request.query.next), request.query.session_expired is True
    try:
        await requests.authenticate(site, ctx, request.headers)
    except errors.Unauthorized:
        has_inbox = site.mail is not None
        return _page(site, "login.html", next=next_path, session_expired=expired, has_inbox=has_inbox)
    return requests.redirect(request.headers, next_path)


async def log_in(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Start a session."""
    form: LoginForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    known = await authentication.log_in(
        ctx,
        form.email,
        form.password,
        client_address=request.client_address,
        request_id=request.id,
        kind=stored_sessions.Kind.BROWSER,
        device=request.device,
    )
    cookie = requests.session_cookie(ctx, site, known.session)
    return requests.redirect(request.headers, local_path(form.next), headers=(cookie,))


async def log_out(request: requests.PageRequest) -> routing.Response:
    """End the session. Even if the store cannot be written, this browser loses it."""
    with contextlib.suppress(errors.NotFound, errors.ServiceUnavailable, errors.TemporaryFailure):
        await sessions.end(request.ctx, request.session.row.id)
    gone = cookies.remove(cookies.SESSION, is_secure=request.site.is_secure)
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
    user = await password_links.find_user(_acting(ctx, request), token)
    return _page(site, "password.html", token=token, email=user.email, is_new=user.joined_at is None)


async def choose_password(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Set the password and start a session."""
    form: PasswordForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    acting = _acting(ctx, request)
    user = await password_links.redeem(acting, request.path["token"], password=form.password)
    known = await login.enter(acting, user, methods=authentication.PASSWORD, device=request.device)
    cookie = requests.session_cookie(ctx, site, known.session)
    return requests.redirect(request.headers, HOME, headers=(cookie,))


def _acting(ctx: context.Context, request: routing.Request) -> context.Context:
    """The context of somebody who may hold a link."""
    return login.acting(ctx, client_address=request.client_address, request_id=request.id)


ROUTES: Final = (
    requests.public("GET", "/login", show_login, query=LoginQuery),
    requests.public("POST", "/login", log_in, form=LoginForm, body_limit=BODY_BYTES),
    requests.post("/logout", log_out, permission=requests.VIEW, looking=requests.Looking.UNCHANGED),
    requests.post("/switch", switch, form=SwitchForm, permission=requests.VIEW),
    requests.public("GET", "/password/{token}", show_password),
    requests.public("POST", "/password/{token}", choose_password, form=PasswordForm, body_limit=BODY_BYTES),
)
