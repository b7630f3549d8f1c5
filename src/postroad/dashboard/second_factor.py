"""`/login/second-factor`: the second step of logging in, after the password."""

from typing import Final

import msgspec

from postroad import errors
from postroad.dashboard import cookies, forms, login, requests
from postroad.dashboard import site as sites
from postroad.services import context
from postroad.services.auth import login as services_login
from postroad.services.auth import password_links, pending_logins, relying_party, second_factors
from postroad.web import routing

PATH: Final = login.SECOND_FACTOR


class SecondStep(forms.Form, frozen=True, kw_only=True):
    """The page to open afterwards, in an account or in the one that was used last."""

    next: str | None = None
    account_id: str | None = None


class CodeForm(SecondStep, frozen=True, kw_only=True):
    """A code."""

    code: str


class SecondStepQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The page to open after the login, and the account."""

    next: str | None = None
    account_id: str | None = None


async def show(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """The form for the code; without a right password, that of the login."""
    query: SecondStepQuery = request.query
    try:
        pending = await pending_logins.find(ctx, login.pending_token(site, request))
    except errors.Unauthorized:
        return requests.redirect(request.headers, "/login")
    factors = await second_factors.of_login(ctx, pending.login.id)
    next_path = login.local_path(query.next)
    return login.page(
        site,
        "second_factor.html",
        next=next_path,
        account_id=query.account_id,
        factors=factors,
        relying_party=relying_party.of(ctx.settings),
    )


async def check(site: sites.Site, ctx: context.Context, request: routing.Request) -> routing.Response:
    """Check the code and start a session."""
    form: CodeForm = request.body
    forms.refuse_cross_origin(site, request.headers)
    pending = await pending_logins.find(ctx, login.pending_token(site, request))
    method = await second_factors.check_code(login.acting(ctx, request), pending.login, form.code)
    return await complete(site, ctx, request, method=method)


async def complete(
    site: sites.Site, ctx: context.Context, request: routing.Request, *, method: str
) -> routing.Response:
    """Start the session of a login that has proved its second factor by `method`."""
    form: SecondStep = request.body
    acting, account_id = login.acting(ctx, request), form.account_id
    pending = await pending_logins.consume(ctx, login.pending_token(site, request))
    if pending.invitation is not None:
        account_id = (await password_links.join(acting, pending.invitation, pending.login)).account_id
    known = await services_login.finish(
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
    return requests.redirect(request.headers, login.local_path(form.next), headers=fields)


ROUTES: Final = (
    requests.public("GET", PATH, show, query=SecondStepQuery),
    requests.public("POST", PATH, check, form=CodeForm, body_limit=login.BODY_BYTES),
)
